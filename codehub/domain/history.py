"""The operations of a workspace, told by the lines that its audit trail has of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from codehub.domain.states import ErrorReason, Operation


class Transition(StrEnum):
    """What a line says about an operation."""

    CLAIMED = "claimed"
    ATTEMPT_FAILED = "attempt_failed"
    COMPLETED = "completed"
    FAILED = "failed"
    RELEASED = "released"


class OperationResult(StrEnum):
    """How an operation ended.

    RELEASED: it gave its claim back while a provider did not answer. ABANDONED: another one began, and no
    line tells of an end.
    """

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    RELEASED = "RELEASED"
    ABANDONED = "ABANDONED"


@dataclass(frozen=True)
class OperationEvent:
    """One line of the audit trail that is about an operation."""

    event_id: int
    at: datetime
    transition: Transition
    operation: Operation
    error_reason: ErrorReason | None = None
    message: str | None = None


@dataclass(frozen=True)
class OperationRecord:
    """One operation from its claim to its end; `event_id` is the claim's. The error is the last attempt's."""

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


def operations_from_events(lines: Iterable[OperationEvent], *, superseded: bool) -> list[OperationRecord]:
    """The operations, newest first, of lines that are in order.

    `superseded` says that another operation was claimed after these lines, so the last one is not under way.
    """
    claims: list[list[OperationEvent]] = []
    for line in lines:
        if line.transition is Transition.CLAIMED:
            claims.append([line])
        elif claims:  # else it belongs to a claim that these lines do not reach back to
            claims[-1].append(line)
    unfinished = [OperationResult.ABANDONED] * len(claims)
    if claims and not superseded:
        unfinished[-1] = OperationResult.RUNNING
    return [_record(claim, otherwise) for claim, otherwise in zip(claims, unfinished, strict=True)][::-1]


def _record(lines: list[OperationEvent], unfinished: OperationResult) -> OperationRecord:
    claim, last = lines[0], lines[-1]
    end = next((line for line in lines if line.transition in ENDS), None)
    told = end or last
    return OperationRecord(
        operation=claim.operation,
        started_at=claim.at,
        ended_at=end.at if end else None,
        result=ENDS[end.transition] if end else unfinished,
        attempts=1 + sum(line.transition is Transition.ATTEMPT_FAILED for line in lines),
        error_reason=told.error_reason,
        message=told.message,
        event_id=claim.event_id,
    )
