"""Summarize the rounds: medians, overhead over the bare provider, and whether the goal is met."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.instances.codehub import PARTS
from benchmarks.instances.contestants import BARE, HUB, NAMES, OURS
from benchmarks.report import Cell, Section, milliseconds, percentile, verdict
from codehub.domain.states import Operation

OPERATIONS = (Operation.STARTING, Operation.STOPPING)
GOAL_MILLISECONDS = 150
NOTHING = "-"
Key = tuple[str, str, Operation]


@dataclass(frozen=True)
class Burst:
    """Many at once: seconds until the last was done, of each that succeeded, and how many were requested."""

    whole: float
    each: Sequence[float]
    requested: int


@dataclass
class Results:
    """By image, contestant and operation; one entry per round, None if it failed."""

    seconds: defaultdict[Key, list[float | None]] = field(default_factory=lambda: defaultdict(list))
    parts: defaultdict[tuple[Key, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    bursts: defaultdict[Key, list[Burst]] = field(default_factory=lambda: defaultdict(list))

    def add_parts(self, key: Key, parts: Mapping[str, float]) -> None:
        for part, seconds in parts.items():
            self.parts[key, part].append(seconds)

    def measured(self, key: Key) -> list[float]:
        return [each for each in self.seconds[key] if each is not None]

    def compare(self, key: Key, other: str, how: Callable[[float, float], float]) -> float | None:
        """Return the median over the rounds: other load on the machine affects both sides of a round."""
        image, _, operation = key
        pairs = zip(self.seconds[key], self.seconds[image, other, operation], strict=False)
        found = [how(mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None]
        return _median(found)

    def overhead(self, key: Key) -> float | None:
        return self.compare(key, BARE, lambda mine, bare: mine - bare)

    def times(self, key: Key, other: str) -> float | None:
        return self.compare(key, other, lambda mine, theirs: mine / theirs)


def single_section(image: str, results: Results, remarks: Sequence[str]) -> Section:
    names = [name for name in NAMES if results.measured((image, name, Operation.STARTING))]
    rows = [_row(image, name, results) for name in names]
    columns = [""]
    for operation in OPERATIONS:
        columns += [f"{operation} p50", "p90", "overhead", "x bare"]
    rounds = len(results.seconds[image, OURS, Operation.STARTING])
    return Section(f"{image}: one workspace, {rounds} alternating rounds (ms)", columns, rows, remarks)


def _row(image: str, name: str, results: Results) -> Sequence[Cell]:
    cells: list[Cell] = [name]
    for operation in OPERATIONS:
        key = (image, name, operation)
        mine, overhead = results.measured(key), results.overhead(key)
        cells += [figure(mine, 50), figure(mine, 90)]
        cells += [NOTHING if overhead is None else milliseconds(overhead), _ratio(results.times(key, BARE))]
    return cells


def overhead_remarks(image: str, results: Results) -> list[str]:
    """Return whether the goal is met, for each operation."""
    return [_conclude((image, OURS, operation), results) for operation in OPERATIONS]


def _conclude(key: Key, results: Results) -> str:
    overhead = results.overhead(key)
    if overhead is None:
        return f"{key[2]}: not measured"
    return f"{judge_overhead(key[2], overhead)}; {compare_with_hub(key, results)}"


def judge_overhead(operation: Operation, seconds: float) -> str:
    took = milliseconds(seconds)
    goal = f"(goal: {GOAL_MILLISECONDS} ms): {verdict(took <= GOAL_MILLISECONDS)}"
    return f"{operation}: {took} ms more than bare {goal}"


def compare_with_hub(key: Key, results: Results) -> str:
    image, _, operation = key
    return f"JupyterHub takes {_ratio(results.times((image, HUB, operation), OURS))} x as long as CodeHub"


def parts_section(images: Sequence[str], results: Results) -> Section:
    """Return the steps of CodeHub's operations, from Temporal's histories."""
    keys = [(image, OURS, operation) for image in images for operation in OPERATIONS]
    rows = [(part, *(figure(results.parts[key, part], 50) for key in keys)) for part in PARTS]
    columns = ("step", *(f"{image} {operation}" for image, _, operation in keys))
    return Section("Steps in CodeHub (median ms)", columns, rows)


def burst_section(image: str, results: Results) -> Section:
    names = [name for name in NAMES if results.bursts[image, name, Operation.STARTING]]
    rows = [_burst_row(image, name, results) for name in names]
    columns = ["s"]
    for done in ("ready", "gone"):
        columns += [f"all {done}", "per s", "each p50", "p99", "x bare"]
    bursts = results.bursts[image, OURS, Operation.STARTING]
    title = (
        f"{image}: {bursts[0].requested} at once, medians of {len(bursts)}"
        if bursts
        else f"{image}: not measured"
    )
    return Section(title, [*columns, "failed"], rows)


def _burst_row(image: str, name: str, results: Results) -> Sequence[Cell]:
    cells: list[Cell] = [name]
    for operation in OPERATIONS:
        mine, bare = results.bursts[image, name, operation], results.bursts[image, BARE, operation]
        whole, base = _median_whole(mine), _median_whole(bare)
        each = [seconds for burst in mine for seconds in burst.each]
        cells += [_rounded(whole), _rounded(mine[0].requested / whole if whole else None)]
        cells += [_rounded(_median(each)), _rounded(_percentile(each, 99))]
        cells += [_ratio(whole / base if whole and base else None)]
    # A workspace that never started counts as not stopped.
    lost = (burst.requested - len(burst.each) for burst in results.bursts[image, name, Operation.STOPPING])
    return [*cells, sum(lost)]


def _median_whole(bursts: Sequence[Burst]) -> float | None:
    """Consider only bursts without failures: fewer workspaces are faster."""
    return _median([burst.whole for burst in bursts if len(burst.each) == burst.requested])


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _percentile(values: Sequence[float], percent: int) -> float | None:
    """Return a percentile, which a single value is by itself."""
    if not values:
        return None
    return percentile(values, percent) if len(values) > 1 else values[0]


def figure(values: Sequence[float], percent: int) -> Cell:
    """Return milliseconds."""
    value = _percentile(values, percent)
    return NOTHING if value is None else milliseconds(value)


def _rounded(value: float | None) -> Cell:
    return NOTHING if value is None else round(value, 1)


def _ratio(value: float | None) -> Cell:
    return NOTHING if value is None else f"{value:.2f}"
