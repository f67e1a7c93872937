"""`python -m gameday.mutations`: break a copy of CodeHub in one place at a time; somebody has to notice."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gameday.mutation_list import MUTATIONS, Detector, Mutation

REPOSITORY = Path(__file__).parents[1]
LIMIT_SECONDS = 600
PASSED, FAILED = 0, 1
_NOT_SOURCE = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "node_modules"
)


@dataclass(frozen=True)
class Verdict:
    mutation: Mutation
    caught: bool
    seconds: float


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
        verdicts = [_try(copy, mutation) for mutation in wanted]
    survivors = [verdict.mutation.name for verdict in verdicts if not verdict.caught]
    _say(f"{len(verdicts) - len(survivors)} of {len(verdicts)} mutations were caught.")
    return 1 if survivors else 0


def _wanted() -> list[Mutation]:
    parser = argparse.ArgumentParser(prog="gameday.mutations", description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="a part of the names of the mutations to try")
    only = parser.parse_args().only or ""
    wanted = [mutation for mutation in MUTATIONS if only in mutation.name]
    if not wanted:
        parser.error(f"no mutation is called {only!r}")
    return wanted


def _require_sound_detectors(copy: Path, wanted: list[Mutation]) -> None:
    """A test that fails anyway would catch everything."""
    for detector in {str(mutation.detector): mutation.detector for mutation in wanted}.values():
        if _detect(copy, detector) != PASSED:
            sys.exit(f"{detector} fails without any mutation; run it and see why.")
        _say(f"passes as it is  {detector}")


def _try(copy: Path, mutation: Mutation) -> Verdict:
    began = time.monotonic()
    with _broken(copy, mutation):
        # Only a test that ran and failed has noticed; what cannot even be collected proves nothing.
        caught = _detect(copy, mutation.detector) == FAILED
    verdict = Verdict(mutation, caught, time.monotonic() - began)
    _say(_row(verdict))
    return verdict


@contextmanager
def _broken(copy: Path, mutation: Mutation) -> Iterator[None]:
    file = copy / mutation.file
    content = file.read_text()
    file.write_text(mutated(content, mutation))
    try:
        yield
    finally:
        file.write_text(content)


def _detect(copy: Path, detector: Detector) -> int:
    command = (sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
    options = (f"--basetemp={copy.parent / 'tests'}", detector.path, "-k", detector.selection)
    try:
        run = subprocess.run(  # noqa: S603
            (*command, *options),
            cwd=copy,
            # Programs that the tests start must be those of the copy too.
            env={**os.environ, **detector.environment, "PYTHONPATH": str(copy)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1
    return run.returncode


def _row(verdict: Verdict) -> str:
    word = "caught  " if verdict.caught else "SURVIVED"
    return f"{word} {verdict.seconds:5.0f} s  {verdict.mutation.name:<46} {verdict.mutation.detector}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
