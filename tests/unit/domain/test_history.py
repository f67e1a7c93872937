"""Operations are reconstructed from the audit trail."""

from datetime import UTC, datetime, timedelta

import pytest

from codehub.domain.history import (
    OperationEvent,
    OperationRecord,
    OperationResult,
    Transition,
    operations_from_events,
)
from codehub.domain.states import ErrorReason, Operation

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


def at(event_id: int) -> datetime:
    return NOW + timedelta(seconds=event_id)


def line(event_id: int, transition: Transition, operation: Operation = Operation.STARTING) -> OperationEvent:
    if transition in {Transition.CLAIMED, Transition.COMPLETED}:
        return OperationEvent(event_id, at(event_id), transition, operation)
    return OperationEvent(
        event_id, at(event_id), transition, operation, ErrorReason.UNREACHABLE, f"Failure {event_id}."
    )


def only(*marks: Transition, superseded: bool = False) -> OperationRecord:
    lines = (line(number, transition) for number, transition in enumerate(marks, start=1))
    [record] = operations_from_events(lines, superseded=superseded)
    return record


def test_completed_operation_has_an_end_and_no_error() -> None:
    assert only(Transition.CLAIMED, Transition.COMPLETED) == OperationRecord(
        operation=Operation.STARTING,
        started_at=at(1),
        ended_at=at(2),
        result=OperationResult.COMPLETED,
        attempts=1,
        error_reason=None,
        message=None,
        event_id=1,
    )


def test_failed_operation_has_its_reason_and_counts_its_last_attempt() -> None:
    record = only(Transition.CLAIMED, Transition.ATTEMPT_FAILED, Transition.ATTEMPT_FAILED, Transition.FAILED)
    assert (record.result, record.ended_at, record.attempts) == (OperationResult.FAILED, at(4), 3)
    assert (record.error_reason, record.message) == (ErrorReason.UNREACHABLE, "Failure 4.")


def test_operation_that_succeeded_in_the_end_shows_no_error() -> None:
    record = only(Transition.CLAIMED, Transition.ATTEMPT_FAILED, Transition.COMPLETED)
    assert (record.result, record.attempts, record.message) == (OperationResult.COMPLETED, 2, None)


def test_running_operation_shows_why_it_was_tried_again() -> None:
    record = only(Transition.CLAIMED, Transition.ATTEMPT_FAILED)
    assert (record.result, record.ended_at, record.attempts) == (OperationResult.RUNNING, None, 2)
    assert record.message == "Failure 2."


@pytest.mark.parametrize("marks", [(Transition.CLAIMED,), (Transition.CLAIMED, Transition.ATTEMPT_FAILED)])
def test_operation_without_an_end_is_abandoned_when_a_later_page_has_another(
    marks: tuple[Transition, ...],
) -> None:
    record = only(*marks, superseded=True)
    assert (record.result, record.ended_at) == (OperationResult.ABANDONED, None)


def test_newest_comes_first_and_only_it_may_be_running() -> None:
    lines = [
        line(10, Transition.CLAIMED, Operation.RESTORING),
        line(11, Transition.COMPLETED, Operation.RESTORING),
        line(20, Transition.CLAIMED, Operation.STARTING),
        line(30, Transition.CLAIMED, Operation.STOPPING),
    ]
    assert [
        (record.event_id, record.operation, record.result)
        for record in operations_from_events(lines, superseded=False)
    ] == [
        (30, Operation.STOPPING, OperationResult.RUNNING),
        (20, Operation.STARTING, OperationResult.ABANDONED),
        (10, Operation.RESTORING, OperationResult.COMPLETED),
    ]


def test_events_without_their_claim_are_skipped() -> None:
    assert (
        operations_from_events(
            [line(1, Transition.ATTEMPT_FAILED), line(2, Transition.COMPLETED)], superseded=False
        )
        == []
    )


def test_no_events_are_no_operations() -> None:
    assert operations_from_events([], superseded=False) == []
