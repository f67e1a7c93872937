"""`python -m testkit.mutations`: break a copy of CodeHub in one place at a time."""

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
_NOT_SOURCE = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "node_modules"
)


class StaleMutation(Exception):
    """A mutation does not fit the code of today."""


def mutated(content: str, mutation: Mutation) -> str:
    found = content.count(mutation.old)
    if found != 1:
        message = f"{mutation.file} has the old text of {mutation.name!r} {found} times and not once."
        raise StaleMutation(f"{message} Write the mutation anew.")
    return content.replace(mutation.old, mutation.new)


def main() -> int:
    wanted = _wanted()
    with tempfile.TemporaryDirectory(prefix="codehub-mutations-") as place:
        copy = Path(place) / "copy"
        shutil.copytree(REPOSITORY, copy, ignore=_NOT_SOURCE)
        _require_sound_detectors(copy, wanted)
        caught = [_is_caught(copy, mutation) for mutation in wanted]
    _say(f"{sum(caught)} of {len(caught)} mutations were caught.")
    return 0 if all(caught) else 1


def _wanted() -> list[Mutation]:
    parser = argparse.ArgumentParser(prog="testkit.mutations.__main__", description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="a part of the names of the mutations to try")
    only = parser.parse_args().only or ""
    wanted = [mutation for mutation in MUTATIONS if only in mutation.name]
    if not wanted:
        parser.error(f"no mutation is called {only!r}")
    return wanted


def _require_sound_detectors(copy: Path, wanted: list[Mutation]) -> None:
    """A test that fails anyway would catch everything."""
    for detector in {str(mutation.detector): mutation.detector for mutation in wanted}.values():
        verdict, words = detector.detect(copy)
        if verdict is not Verdict.SOUND:
            sys.exit(f"{detector} fails without any mutation ({words}); run it and see why.")
        _say(f"passes as it is  {detector}")


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
