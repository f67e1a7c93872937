"""Summarize the rounds: medians, ratios per round, and whether the goals are met."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.proxy.workloads import MANY, WORKLOADS, Figures, Memory, Workload
from benchmarks.report import MEGABYTE, Cell, Section, verdict

BASE, OURS, AUTH, CHP = "nginx", "ours", "nginx-auth", "chp"
NOTHING = "-"
KILOBYTE = 1000
Pick = Callable[[Figures], float | None]


def rate(figures: Figures) -> float | None:
    return figures.rate


def p50(figures: Figures) -> float | None:
    return figures.p50


def p99(figures: Figures) -> float | None:
    return figures.p99


def cpu(figures: Figures) -> float | None:
    return figures.cpu


def busy(figures: Figures) -> float | None:
    return figures.busy_percent


@dataclass
class Results:
    """By workload and contestant; one entry per round, None if it failed."""

    rounds: defaultdict[tuple[str, str], list[Figures | None]] = field(
        default_factory=lambda: defaultdict(list)
    )
    memory: dict[str, Memory] = field(default_factory=dict)
    loaded_bytes: dict[str, int] = field(default_factory=dict)

    def names(self, title: str) -> list[str]:
        return [name for workload, name in self.rounds if workload == title]

    def median(self, title: str, name: str, pick: Pick) -> float | None:
        found = [value for each in self.rounds[title, name] if each and (value := pick(each)) is not None]
        return statistics.median(found) if found else None

    def ratio(self, title: str, name: str, base: str, pick: Pick) -> float | None:
        """Return the median over the rounds: other load on the machine affects both sides of a round."""
        ratios = list(self._ratios(title, name, base, pick))
        return statistics.median(ratios) if ratios else None

    def _ratios(self, title: str, name: str, base: str, pick: Pick) -> Iterator[float]:
        pairs = zip(self.rounds.get((title, name), ()), self.rounds.get((title, base), ()), strict=False)
        for one, other in pairs:
            if one is None or other is None:
                continue
            mine, theirs = pick(one), pick(other)
            if mine is not None and theirs:
                yield mine / theirs


@dataclass(frozen=True)
class Goal:
    """A bound for the ratio of ours to another contestant."""

    title: str
    pick: Pick
    other: str
    bound: float
    at_most: bool = False

    def row(self, results: Results) -> Sequence[Cell]:
        sign, what = ("≤", "p99") if self.at_most else ("≥", "rate")
        text = f"{what} {sign} {self.bound:g} x {self.other}"
        ratio = results.ratio(self.title, OURS, self.other, self.pick)
        if ratio is None:
            return self.title, text, NOTHING, "not measured"
        met = ratio <= self.bound if self.at_most else ratio >= self.bound
        return self.title, text, f"{ratio:.2f} x", verdict(met)


GOALS = (
    Goal(MANY, rate, AUTH, 1.0),
    Goal(MANY, rate, CHP, 10.0),
    Goal(MANY, p99, BASE, 2.0, at_most=True),
    *(Goal(each.title, rate, BASE, 0.8) for each in WORKLOADS if each.websocket),
)


def section_of(workload: Workload, results: Results) -> Section:
    columns = ("", f"{workload.unit}/s", "x nginx", "p50 µs", "p99 µs", f"CPU µs/{workload.unit}", "busy %")
    rows = [_row(workload.title, name, results) for name in results.names(workload.title)]
    return Section(workload.title, columns, rows)


def _row(title: str, name: str, results: Results) -> Sequence[Cell]:
    ratio = results.ratio(title, name, BASE, rate)
    return (
        name,
        _whole(results.median(title, name, rate)),
        f"{ratio:.2f}" if ratio is not None else NOTHING,
        _whole(results.median(title, name, p50)),
        _whole(results.median(title, name, p99)),
        _tenths(results.median(title, name, cpu)),
        _whole(results.median(title, name, busy)),
    )


def memory_section(results: Results) -> Section:
    count = max(memory.websockets for memory in results.memory.values())
    rows: list[Sequence[Cell]] = [
        (
            name,
            _tenths(memory.at_start / MEGABYTE),
            _tenths(results.loaded_bytes[name] / MEGABYTE),
            _tenths(memory.per_websocket / KILOBYTE),
        )
        for name, memory in results.memory.items()
    ]
    columns = ("resident", "MB at start", "MB after all rounds", "KB per idle WebSocket")
    return Section(f"Memory, {count} idle WebSockets", columns, rows)


def goals_section(results: Results) -> Section:
    return Section("Goals", ("ours", "goal", "measured", ""), [goal.row(results) for goal in GOALS])


def _whole(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}"


def _tenths(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.1f}"
