"""The operations of a workspace, reconstructed from its audit trail."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from codehub.domain.states import ErrorReason, Operation


class Transition(StrEnum):
    """What an event says about its operation."""

    CLAIMED = "claimed"
    ATTEMPT_FAILED = "attempt_failed"
    COMPLETED = "completed"
    FAILED = "failed"
    RELEASED = "released"


class OperationResult(StrEnum):
    """How an operation ended.

    RELEASED: it gave its claim back because a provider did not respond. ABANDONED: another operation was
    claimed, and no event says how this one ended.
    """

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    RELEASED = "RELEASED"
    ABANDONED = "ABANDONED"


@dataclass(frozen=True)
class OperationEvent:
    """One event of the audit trail that is about an operation."""

    event_id: int
    at: datetime
    transition: Transition
    operation: Operation
    error_reason: ErrorReason | None = None
    message: str | None = None


@dataclass(frozen=True)
class OperationRecord:
    """One operation, from its claim to its end; `event_id` is of the claim, the error of the last attempt."""

    operation: Operation
    started_at: datetime
    ended_at: datetime | None
    result: OperationResult
    attempts: int
    error_reason: ErrorReason | None
    message: str | None
    event_id: int


ENDS = {
    Transition.COMPLETED: OperationResult.COMPLETED,
    Transition.FAILED: OperationResult.FAILED,
    Transition.RELEASED: OperationResult.RELEASED,
}


def operations_from_events(events: Iterable[OperationEvent], *, superseded: bool) -> list[OperationRecord]:
    """Return the operations, newest first, of events in their order.

    `superseded` says that another operation was claimed after these events, so none of them is in progress.
    """
    claims: list[list[OperationEvent]] = []
    for event in events:
        if event.transition is Transition.CLAIMED:
            claims.append([event])
        elif claims:  # otherwise its claim is on an earlier page
            claims[-1].append(event)
    unfinished = [OperationResult.ABANDONED] * len(claims)
    if claims and not superseded:
        unfinished[-1] = OperationResult.RUNNING
    return [_record(claim, otherwise) for claim, otherwise in zip(claims, unfinished, strict=True)][::-1]


def _record(events: list[OperationEvent], unfinished: OperationResult) -> OperationRecord:
    claim, last = events[0], events[-1]
    end = next((event for event in events if event.transition in ENDS), None)
    latest = end or last
    return OperationRecord(
        operation=claim.operation,
        started_at=claim.at,
        ended_at=end.at if end else None,
        result=ENDS[end.transition] if end else unfinished,
        attempts=1 + sum(event.transition is Transition.ATTEMPT_FAILED for event in events),
        error_reason=latest.error_reason,
        message=latest.message,
        event_id=claim.event_id,
    )
