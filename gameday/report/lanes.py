"""Each workspace's phases and operations over time, and its history as text, from its audit trail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from codehub.db.events import EventKind, EventView
from gameday.checks.audit_trail import END_EVENTS
from gameday.faults.fault import FaultRecord


@dataclass(frozen=True)
class Interval:
    """A phase or an operation, in seconds since the game began."""

    what: str
    begin: float
    end: float


@dataclass(frozen=True)
class Lane:
    """One workspace on the timeline."""

    workspace_id: str
    name: str
    phases: tuple[Interval, ...]
    operations: tuple[Interval, ...]


def make_lane(
    workspace_id: str, name: str, trail: Sequence[EventView], began: datetime, seconds: float
) -> Lane:
    """Return the lane of a workspace; its last phase lasts until the end of the game."""
    return Lane(
        workspace_id,
        name,
        tuple(_phases(trail, began, seconds)),
        tuple(_operations(trail, began, seconds)),
    )


def _phases(trail: Sequence[EventView], began: datetime, seconds: float) -> Iterator[Interval]:
    phase, since = None, 0.0
    for line in trail:
        if line.phase is not None and line.phase is not phase:
            at = (line.at - began).total_seconds()
            if phase is not None:
                yield Interval(phase, since, at)
            phase, since = line.phase, at
    if phase is not None:
        yield Interval(phase, since, seconds)


def _operations(trail: Sequence[EventView], began: datetime, seconds: float) -> Iterator[Interval]:
    claimed: EventView | None = None
    for line in trail:
        if line.kind == EventKind.OPERATION_CLAIMED:
            claimed = line
        elif line.kind in END_EVENTS and claimed is not None:
            yield _operation(claimed, began, (line.at - began).total_seconds())
            claimed = None
    if claimed is not None:
        yield _operation(claimed, began, seconds)


def _operation(claimed: EventView, began: datetime, end: float) -> Interval:
    return Interval(str(claimed.operation), (claimed.at - began).total_seconds(), end)


def make_history(
    trail: Sequence[EventView], faults: Sequence[FaultRecord], began: datetime
) -> tuple[str, ...]:
    """Return the events of a workspace and the faults during its lifetime, in order of time."""
    events = [((line.at - began).total_seconds(), _describe(line)) for line in trail]
    first = events[0][0] if events else 0.0
    concurrent = [
        (fault.at, f"fault {fault.kind} ({fault.seconds:.1f} s): {fault.what}")
        for fault in faults
        if fault.at + fault.seconds >= first
    ]
    return tuple(f"{at:8.2f} s  {words}" for at, words in sorted(events + concurrent))


def _describe(line: EventView) -> str:
    words = [f"event {line.id} {line.kind} by {line.actor}", line.operation, line.phase, line.error_reason]
    detail = ", ".join(f"{name}: {value}" for name, value in line.detail.items())
    return ", ".join(str(each) for each in (*words, detail) if each)
