"""Who has to notice a mutation: a test, or a whole game."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

CRASH_MATRIX = "tests/chaos/test_crash_matrix.py"
ONLY_CRASH_AT = "TESTKIT_ONLY_CRASH_AT"
# The installed program is that of the repository, not of the copy.
COMMAND_LINE = "from cli.main import main; main()"
LIMIT_SECONDS = 900
# Of what may be hundreds of violations.
MOST_WORDS = 2
PASSED, FAILED = 0, 1


class Verdict(StrEnum):
    """What a detector says; one that could not even do its work has noticed nothing."""

    SOUND = "sound"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Tests:
    """What to give to pytest."""

    path: str
    selection: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        where = "".join(f" at {value}" for value in self.environment.values())
        return f"{self.path} -k {self.selection!r}{where}"

    def detect(self, copy: Path) -> tuple[Verdict, str]:
        """Look at a copy of CodeHub; what was seen, in a few words."""
        command = (sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
        options = (f"--basetemp={copy.parent / 'tests'}", self.path, "-k", self.selection)
        status = _run(copy, (*command, *options), self.environment)
        # Only a test that ran and failed has noticed; what cannot even be collected proves nothing.
        verdict = {PASSED: Verdict.SOUND, FAILED: Verdict.BROKEN}.get(status, Verdict.UNKNOWN)
        return verdict, f"pytest ended with {status}"


@dataclass(frozen=True)
class Game:
    """A game day; what it breaks depends on the seed, and whether that hurts also on the machine."""

    seed: str
    minutes: float = 2.0
    faults_per_second: float = 1.0

    def __str__(self) -> str:
        return f"codehub {' '.join(self._words)}"

    @property
    def _words(self) -> tuple[str, ...]:
        return (
            *("gameday", "--seed", self.seed, "--minutes", f"{self.minutes:g}"),
            *("--faults-per-second", f"{self.faults_per_second:g}"),
        )

    def detect(self, copy: Path) -> tuple[Verdict, str]:
        """As tests do."""
        with tempfile.TemporaryDirectory(dir=copy.parent) as directory:
            command = (sys.executable, "-B", "-c", COMMAND_LINE, *self._words, "--report", directory)
            status = _run(copy, command, {})
            reports = [json.loads(each.read_text()) for each in Path(directory).glob("*.json")]
        if not reports:
            return Verdict.UNKNOWN, f"codehub gameday ended with {status} and without a report"
        [report] = reports
        if report["held"]:
            return Verdict.SOUND, f"{len(report['faults'])} faults, every invariant held"
        # A game that was not played to its end has no violation and proves nothing.
        violations = [f"{each['words']} ({each['invariant']})" for each in report["violations"]]
        return (Verdict.BROKEN if violations else Verdict.UNKNOWN), "; ".join(violations[:MOST_WORDS])


Detector: TypeAlias = Tests | Game


def crash(operation: str, point: str) -> Tests:
    return Tests(CRASH_MATRIX, operation, {ONLY_CRASH_AT: point})


def _run(copy: Path, command: Sequence[str], environment: Mapping[str, str]) -> int:
    try:
        run = subprocess.run(
            command,
            cwd=copy,
            # Programs that are started must be those of the copy too.
            env={**os.environ, **environment, "PYTHONPATH": str(copy)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1
    return run.returncode
