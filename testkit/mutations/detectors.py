"""Detectors of mutations: tests, and whole games."""

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
# The installed program would run the repository, not the copy.
COMMAND_LINE = "from cli.main import main; main()"
LIMIT_SECONDS = 900
# There may be hundreds of violations.
SHOWN_VIOLATIONS = 2
PASSED, FAILED = 0, 1


class Verdict(StrEnum):
    """The result of a detector; UNKNOWN means that it could not run."""

    SOUND = "sound"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Tests:
    """Tests that fail on the mutation."""

    path: str
    selection: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        where = "".join(f" at {value}" for value in self.environment.values())
        return f"{self.path} -k {self.selection!r}{where}"

    def detect(self, copy: Path) -> tuple[Verdict, str]:
        """Run in a copy of the repository; return the verdict and a short description."""
        command = (sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
        options = (f"--basetemp={copy.parent / 'tests'}", self.path, "-k", self.selection)
        status = _run(copy, (*command, *options), self.environment)
        # Only a failed test detects the mutation; a failed collection proves nothing.
        verdict = {PASSED: Verdict.SOUND, FAILED: Verdict.BROKEN}.get(status, Verdict.UNKNOWN)
        return verdict, f"pytest ended with {status}"


@dataclass(frozen=True)
class Game:
    """A game day; its faults depend on the seed, their effect also on the speed of the machine."""

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
        """Play the game in a copy of the repository."""
        with tempfile.TemporaryDirectory(dir=copy.parent) as directory:
            command = (sys.executable, "-B", "-c", COMMAND_LINE, *self._words, "--report", directory)
            status = _run(copy, command, {})
            reports = [json.loads(each.read_text()) for each in Path(directory).glob("*.json")]
        if not reports:
            return Verdict.UNKNOWN, f"codehub gameday ended with {status} and without a report"
        [report] = reports
        if report["held"]:
            return Verdict.SOUND, f"{len(report['faults'])} faults, every invariant held"
        # A game that ended early has no violations and proves nothing.
        violations = [f"{each['words']} ({each['invariant']})" for each in report["violations"]]
        return (Verdict.BROKEN if violations else Verdict.UNKNOWN), "; ".join(violations[:SHOWN_VIOLATIONS])


Detector: TypeAlias = Tests | Game


def crash(operation: str, point: str) -> Tests:
    return Tests(CRASH_MATRIX, operation, {ONLY_CRASH_AT: point})


def _run(copy: Path, command: Sequence[str], environment: Mapping[str, str]) -> int:
    try:
        run = subprocess.run(
            command,
            cwd=copy,
            # Child processes must import the copy too.
            env={**os.environ, **environment, "PYTHONPATH": str(copy)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1
    return run.returncode
