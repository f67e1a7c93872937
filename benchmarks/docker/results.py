"""What the turns have given: medians, what comes on top of the bare engine, and whether the goal is met."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.docker.bare import LAUNCH
from benchmarks.docker.codehub import PARTS
from benchmarks.report import Cell, Section, milliseconds, percentile, verdict
from codehub.domain.states import Operation

BARE, ADAPTER, OURS, HUB = "bare Docker", "our adapter alone", "CodeHub", "JupyterHub"
NAMES = (BARE, ADAPTER, OURS, HUB)
OPERATIONS = (Operation.STARTING, Operation.STOPPING)
GOAL_MILLISECONDS = 150
NOTHING = "-"
Key = tuple[str, str, Operation]


@dataclass(frozen=True)
class Crowd:
    """Many at once: seconds until the last was through, and of each that came through."""

    whole: float
    each: Sequence[float]
    asked: int


@dataclass
class Results:
    """By image, contestant and operation; one entry per round, None where it failed."""

    seconds: defaultdict[Key, list[float | None]] = field(default_factory=lambda: defaultdict(list))
    parts: defaultdict[tuple[Key, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    crowds: defaultdict[Key, list[Crowd]] = field(default_factory=lambda: defaultdict(list))

    def add_parts(self, key: Key, parts: Mapping[str, float]) -> None:
        for part, seconds in parts.items():
            self.parts[key, part].append(seconds)

    def measured(self, key: Key) -> list[float]:
        return [each for each in self.seconds[key] if each is not None]

    def compare(self, key: Key, other: str, how: Callable[[float, float], float]) -> float | None:
        """Round by round, since others use the machine too: both of a round met about the same of that."""
        image, _, operation = key
        pairs = zip(self.seconds[key], self.seconds[image, other, operation], strict=False)
        found = [how(mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None]
        return _median(found)

    def beyond_bare(self, key: Key) -> float | None:
        return self.compare(key, BARE, lambda mine, bare: mine - bare)

    def times(self, key: Key, other: str) -> float | None:
        return self.compare(key, other, lambda mine, theirs: mine / theirs)


def single_section(image: str, results: Results) -> Section:
    names = [name for name in NAMES if results.measured((image, name, Operation.STARTING))]
    rows = [_row(image, name, results) for name in names]
    columns = [""]
    for operation in OPERATIONS:
        columns += [f"{operation} p50", "p90", "beyond", "x bare"]
    launches = results.parts[(image, BARE, Operation.STARTING), LAUNCH]
    remarks = [
        f"of bare Docker's, until {LAUNCH}: {_figure(launches, 50)} ms p50, {_figure(launches, 90)} p90"
    ]
    remarks += [_conclusion((image, OURS, operation), results) for operation in OPERATIONS]
    rounds = len(results.seconds[image, OURS, Operation.STARTING])
    return Section(f"{image}: one workspace, {rounds} rounds in turns (ms)", columns, rows, remarks)


def _row(image: str, name: str, results: Results) -> Sequence[Cell]:
    cells: list[Cell] = [name]
    for operation in OPERATIONS:
        key = (image, name, operation)
        mine, beyond = results.measured(key), results.beyond_bare(key)
        cells += [_figure(mine, 50), _figure(mine, 90)]
        cells += [NOTHING if beyond is None else milliseconds(beyond), _ratio(results.times(key, BARE))]
    return cells


def _conclusion(key: Key, results: Results) -> str:
    image, _, operation = key
    beyond = results.beyond_bare(key)
    if beyond is None:
        return f"{operation}: not measured"
    took = milliseconds(beyond)
    goal = f"(goal: {GOAL_MILLISECONDS} ms): {verdict(took <= GOAL_MILLISECONDS)}"
    hub = _ratio(results.times((image, HUB, operation), OURS))
    return f"{operation}: {took} ms beyond bare Docker {goal}; JupyterHub takes {hub} x as long as CodeHub"


def parts_section(images: Sequence[str], results: Results) -> Section:
    """Of CodeHub, from Temporal's own histories."""
    keys = [(image, OURS, operation) for image in images for operation in OPERATIONS]
    rows = [(part, *(_figure(results.parts[key, part], 50) for key in keys)) for part in PARTS]
    columns = ("step", *(f"{image} {operation}" for image, _, operation in keys))
    return Section("Where it goes in CodeHub (median ms)", columns, rows)


def crowd_section(image: str, results: Results) -> Section:
    names = [name for name in NAMES if results.crowds[image, name, Operation.STARTING]]
    rows = [_crowd_row(image, name, results) for name in names]
    columns = ("s", "all ready", "each p50", "x bare", "all gone", "each p50", "x bare", "failed")
    crowds = results.crowds[image, OURS, Operation.STARTING]
    title = f"{image}: {crowds[0].asked} at once, medians of {len(crowds)}" if crowds else f"{image}: no time"
    return Section(title, columns, rows)


def _crowd_row(image: str, name: str, results: Results) -> Sequence[Cell]:
    cells: list[Cell] = [name]
    for operation in OPERATIONS:
        mine, bare = results.crowds[image, name, operation], results.crowds[image, BARE, operation]
        whole, base = _median_whole(mine), _median_whole(bare)
        each = _median([seconds for crowd in mine for seconds in crowd.each])
        cells += [_seconds(whole), _seconds(each), _ratio(whole / base if whole and base else None)]
    # Whoever never started is among those that were not stopped.
    lost = (crowd.asked - len(crowd.each) for crowd in results.crowds[image, name, Operation.STOPPING])
    return [*cells, sum(lost)]


def _median_whole(crowds: Sequence[Crowd]) -> float | None:
    """Only where nobody was lost: fewer are quicker."""
    return _median([crowd.whole for crowd in crowds if len(crowd.each) == crowd.asked])


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _figure(values: Sequence[float], percent: int) -> Cell:
    """Milliseconds."""
    if not values:
        return NOTHING
    return milliseconds(percentile(values, percent) if len(values) > 1 else values[0])


def _seconds(value: float | None) -> Cell:
    return NOTHING if value is None else round(value, 1)


def _ratio(value: float | None) -> Cell:
    return NOTHING if value is None else f"{value:.2f}"
