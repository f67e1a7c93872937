"""The life of each workspace as stretches of time, and in words, read from its audit trail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from codehub.db.events import EventKind, EventView
from gameday.checks.audit_trail import ENDS
from gameday.faults.loop import FaultRecord


@dataclass(frozen=True)
class Stretch:
    """A phase or an operation, from when to when in seconds since the game began."""

    what: str
    begin: float
    end: float


@dataclass(frozen=True)
class Lane:
    """One workspace."""

    workspace_id: str
    name: str
    phases: tuple[Stretch, ...]
    operations: tuple[Stretch, ...]


def lane_of(
    workspace_id: str, name: str, trail: Sequence[EventView], began: datetime, seconds: float
) -> Lane:
    """What goes on at the end lasts until the end."""
    return Lane(
        workspace_id,
        name,
        tuple(_phases(trail, began, seconds)),
        tuple(_operations(trail, began, seconds)),
    )


def _phases(trail: Sequence[EventView], began: datetime, seconds: float) -> Iterator[Stretch]:
    phase, since = None, 0.0
    for line in trail:
        if line.phase is not None and line.phase is not phase:
            at = (line.at - began).total_seconds()
            if phase is not None:
                yield Stretch(phase, since, at)
            phase, since = line.phase, at
    if phase is not None:
        yield Stretch(phase, since, seconds)


def _operations(trail: Sequence[EventView], began: datetime, seconds: float) -> Iterator[Stretch]:
    claimed: EventView | None = None
    for line in trail:
        if line.kind == EventKind.OPERATION_CLAIMED:
            claimed = line
        elif line.kind in ENDS and claimed is not None:
            yield _stretch(claimed, began, (line.at - began).total_seconds())
            claimed = None
    if claimed is not None:
        yield _stretch(claimed, began, seconds)


def _stretch(claimed: EventView, began: datetime, end: float) -> Stretch:
    return Stretch(str(claimed.operation), (claimed.at - began).total_seconds(), end)


def history_of(trail: Sequence[EventView], faults: Sequence[FaultRecord], began: datetime) -> tuple[str, ...]:
    """Every line of its trail, and every fault of its lifetime, in the order of their times."""
    events = [((line.at - began).total_seconds(), _describe(line)) for line in trail]
    first = events[0][0] if events else 0.0
    around = [
        (fault.at, f"fault {fault.kind} ({fault.seconds:.1f} s): {fault.what}")
        for fault in faults
        if fault.at + fault.seconds >= first
    ]
    return tuple(f"{at:8.2f} s  {words}" for at, words in sorted(events + around))


def _describe(line: EventView) -> str:
    words = [f"event {line.id} {line.kind} by {line.actor}", line.operation, line.phase, line.error_reason]
    detail = ", ".join(f"{name}: {value}" for name, value in line.detail.items())
    return ", ".join(str(each) for each in (*words, detail) if each)
