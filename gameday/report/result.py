"""Everything that the report tells, gathered in one value."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from gameday.checks.findings import Invariant, Violation
from gameday.faults.loop import FaultRecord
from gameday.options import Options
from gameday.report.lanes import Lane
from gameday.stage.recoveries import Recovery


@dataclass(frozen=True)
class Span:
    """How long something took, over all times that it happened."""

    count: int
    median: float
    longest: float


@dataclass(frozen=True)
class Story:
    """One game from its beginning to its verdict; times are seconds since its beginning."""

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
            return "Not finished: nothing is proven"
        tested = sum(bool(checks) for checks in self.checked.values())
        if tested < len(Invariant):
            return f"{tested} invariants held, the other {len(Invariant) - tested} were not put to the test"
        return f"All {tested} invariants held"

    def count_faults(self) -> list[tuple[str, int]]:
        """By kind, the most frequent first."""
        return Counter(fault.kind for fault in self.faults).most_common()

    def spans(self) -> dict[str, Span]:
        """How long each part was away."""
        times: dict[str, list[float]] = {}
        for each in self.recoveries:
            times.setdefault(each.name, []).append(each.seconds)
        return {name: Span(len(all_), median(all_), max(all_)) for name, all_ in sorted(times.items())}
