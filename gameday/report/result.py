"""The result of a game: everything that the report shows."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from gameday.checks.findings import Invariant, Violation
from gameday.faults.fault import FaultRecord
from gameday.options import Options
from gameday.report.lanes import Lane
from gameday.stage.recoveries import Recovery


@dataclass(frozen=True)
class RecoveryStats:
    """How often a part was unavailable, and for how many seconds."""

    count: int
    median: float
    longest: float


@dataclass(frozen=True)
class GameResult:
    """One game; times are seconds since its beginning. The JSON report has these fields."""

    options: Options
    began: datetime
    seconds: float
    faults_ended: float
    versions: Mapping[str, str]
    faults: tuple[FaultRecord, ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    lanes: tuple[Lane, ...] = ()
    tally: Mapping[str, int] = field(default_factory=dict)
    checked: Mapping[Invariant, int] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    histories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    complete: bool = True

    @property
    def held(self) -> bool:
        return self.complete and not self.violations

    @property
    def verdict(self) -> str:
        if self.violations:
            return f"{len(self.violations)} violations"
        if not self.complete:
            return "Not finished: this game proves nothing"
        tested = sum(bool(checks) for checks in self.checked.values())
        if tested < len(Invariant):
            return f"{tested} of {len(Invariant)} invariants held (the others were not tested)"
        return f"All {tested} invariants held"

    def count_faults(self) -> list[tuple[str, int]]:
        """Return the number of faults by kind, most frequent first."""
        return Counter(fault.kind for fault in self.faults).most_common()

    def recovery_stats(self) -> dict[str, RecoveryStats]:
        """Return how long each part was unavailable."""
        times: dict[str, list[float]] = {}
        for each in self.recoveries:
            times.setdefault(each.name, []).append(each.seconds)
        return {
            name: RecoveryStats(len(seconds), median(seconds), max(seconds))
            for name, seconds in sorted(times.items())
        }
