"""`python -m testkit.mutations`: apply one mutation at a time to a copy of CodeHub, and run its detector."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testkit.mutations.catalog import MUTATIONS, Mutation
from testkit.mutations.detectors import Verdict

REPOSITORY = Path(__file__).parents[2]
# At the top: the test cluster alone takes gigabytes. Below, programs have the name `build`.
_BUILD_DIRECTORY = "build"
_NOT_SOURCE = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "node_modules"
)


class StaleMutation(Exception):
    """A mutation does not fit the current code."""


def _not_source(directory: str, names: list[str]) -> set[str]:
    ignored = _NOT_SOURCE(directory, names)
    return ignored | {_BUILD_DIRECTORY} if Path(directory) == REPOSITORY else ignored


def mutated(content: str, mutation: Mutation) -> str:
    found = content.count(mutation.old)
    if found != 1:
        message = f"{mutation.file} contains the old text of {mutation.name!r} {found} times instead of once."
        raise StaleMutation(f"{message} Update the mutation.")
    return content.replace(mutation.old, mutation.new)


def main() -> int:
    wanted = _wanted()
    with tempfile.TemporaryDirectory(prefix="codehub-mutations-") as place:
        copy = Path(place) / "copy"
        shutil.copytree(REPOSITORY, copy, ignore=_not_source)
        _require_sound_detectors(copy, wanted)
        caught = [_is_caught(copy, mutation) for mutation in wanted]
    _say(f"{sum(caught)} of {len(caught)} mutations were caught.")
    return 0 if all(caught) else 1


def _wanted() -> list[Mutation]:
    parser = argparse.ArgumentParser(prog="testkit.mutations.__main__", description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="run only mutations whose name contains this")
    only = parser.parse_args().only or ""
    wanted = [mutation for mutation in MUTATIONS if only in mutation.name]
    if not wanted:
        parser.error(f"no name of a mutation contains {only!r}")
    return wanted


def _require_sound_detectors(copy: Path, wanted: list[Mutation]) -> None:
    """Exit if a detector fails without a mutation: it would catch everything."""
    for detector in {str(mutation.detector): mutation.detector for mutation in wanted}.values():
        verdict, words = detector.detect(copy)
        if verdict is not Verdict.SOUND:
            sys.exit(f"{detector} fails without a mutation ({words}); run it to see why.")
        _say(f"passes without a mutation  {detector}")


def _is_caught(copy: Path, mutation: Mutation) -> bool:
    began = time.monotonic()
    with _broken(copy, mutation):
        verdict, words = mutation.detector.detect(copy)
    caught = verdict is Verdict.BROKEN
    word = "caught  " if caught else "SURVIVED"
    seconds = time.monotonic() - began
    _say(f"{word} {seconds:5.0f} s  {mutation.name:<48} {mutation.detector}: {words}")
    return caught


@contextmanager
def _broken(copy: Path, mutation: Mutation) -> Iterator[None]:
    file = copy / mutation.file
    content = file.read_text()
    file.write_text(mutated(content, mutation))
    try:
        yield
    finally:
        file.write_text(content)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
