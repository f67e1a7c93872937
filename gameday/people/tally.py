"""What the people of a game day did and what came of it, counted for the report."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tally:
    """Counts of events, each by its words; everybody who plays adds to the same one."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, times: int = 1) -> None:
        self.counts[what] += times

    def __getitem__(self, what: str) -> int:
        return self.counts[what]

    def sorted(self) -> Mapping[str, int]:
        return dict(sorted(self.counts.items()))
