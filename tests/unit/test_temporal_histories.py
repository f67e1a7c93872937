"""Steps of an operation, read from the history of its workflow."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.api.common.v1 import ActivityType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import (
    ActivityTaskCanceledEventAttributes,
    ActivityTaskCompletedEventAttributes,
    ActivityTaskScheduledEventAttributes,
    ActivityTaskStartedEventAttributes,
    ActivityTaskTimedOutEventAttributes,
    HistoryEvent,
)
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import WorkflowHistory

from codehub.adapters.temporal.histories import OperationRun, read_run
from codehub.ports import StepRecord, StepResult

HISTORIES = Path(__file__).parents[1] / "replay" / "histories"
BEGAN = datetime(2026, 7, 1, tzinfo=UTC)
LOST = Failure(message="activity Heartbeat timeout")


def at(second: int) -> datetime:
    return BEGAN + timedelta(seconds=second)


def event(second: int, **attributes: object) -> HistoryEvent:
    """Return an event whose number is the second at which it happened."""
    made = HistoryEvent(event_id=second, **attributes)  # type: ignore[arg-type]
    made.event_time.FromDatetime(at(second))
    return made


SCHEDULED = event(
    1,
    activity_task_scheduled_event_attributes=ActivityTaskScheduledEventAttributes(
        activity_id="1", activity_type=ActivityType(name="upload")
    ),
)
TRIED_AGAIN = event(
    5,
    activity_task_started_event_attributes=ActivityTaskStartedEventAttributes(
        scheduled_event_id=1, attempt=2, last_failure=LOST
    ),
)


def pending(**fields: object) -> PendingActivityInfo:
    made = PendingActivityInfo(activity_id="1", **fields)  # type: ignore[arg-type]
    made.last_started_time.FromDatetime(at(3))
    return made


def only_step(
    *events: HistoryEvent, waiting: Sequence[PendingActivityInfo] = (), closed_at: datetime | None = None
) -> StepRecord:
    [step] = read_run(OperationRun(events, waiting, closed_at), 1)
    return step


@pytest.mark.parametrize(
    ("operation", "names"),
    [
        ("archiving", ["upload_archive", "commit_archive", "remove_archived_volume"]),
        ("restoring", ["restore_archive", "mark_restored"]),
        ("stopping", ["stop_instance"]),
    ],
)
def test_recorded_histories_contain_their_steps(operation: str, names: list[str]) -> None:
    text = (HISTORIES / f"{operation}.json").read_text()
    steps = read_run(OperationRun(WorkflowHistory.from_json(operation, text).events, (), None), 2)
    assert [step.name for step in steps] == names
    for step in steps:
        assert (step.result, step.operation_attempt, step.attempts) == (StepResult.COMPLETED, 2, 1)
        assert step.started_at is not None
        assert step.ended_at is not None
        assert step.scheduled_at <= step.started_at <= step.ended_at


def test_a_retried_step_has_its_last_error() -> None:
    done = event(
        9, activity_task_completed_event_attributes=ActivityTaskCompletedEventAttributes(scheduled_event_id=1)
    )
    assert only_step(SCHEDULED, TRIED_AGAIN, done) == StepRecord(
        "upload", 1, StepResult.COMPLETED, at(1), at(5), at(9), 2, LOST.message
    )


def test_a_step_that_took_too_long_has_failed() -> None:
    late = ActivityTaskTimedOutEventAttributes(scheduled_event_id=1, failure=Failure(message="too late"))
    step = only_step(SCHEDULED, TRIED_AGAIN, event(9, activity_task_timed_out_event_attributes=late))
    assert (step.result, step.ended_at, step.error) == (StepResult.FAILED, at(9), "too late")


def test_a_cancelled_step_is_reported_as_cancelled() -> None:
    cancelled = ActivityTaskCanceledEventAttributes(scheduled_event_id=1)
    step = only_step(SCHEDULED, event(2, activity_task_canceled_event_attributes=cancelled))
    assert (step.result, step.started_at, step.ended_at) == (StepResult.CANCELLED, None, at(2))


def test_a_running_step_has_its_last_attempt() -> None:
    step = only_step(SCHEDULED, waiting=[pending(attempt=3, last_failure=LOST)])
    assert step == StepRecord("upload", 1, StepResult.RUNNING, at(1), at(3), None, 3, LOST.message)


def test_a_step_that_waits_for_a_worker_has_not_started() -> None:
    step = only_step(SCHEDULED, waiting=[PendingActivityInfo(activity_id="1", attempt=1)])
    assert step == StepRecord("upload", 1, StepResult.RUNNING, at(1))


def test_a_step_that_has_ended_meanwhile_is_not_running() -> None:
    done = ActivityTaskCompletedEventAttributes(scheduled_event_id=1)
    ended = event(9, activity_task_completed_event_attributes=done)
    waiting = [pending(attempt=7), PendingActivityInfo(activity_id="of a later look")]
    step = only_step(SCHEDULED, TRIED_AGAIN, ended, waiting=waiting)
    assert (step.result, step.attempts) == (StepResult.COMPLETED, 2)


def test_no_step_continues_after_the_end_of_its_workflow() -> None:
    step = only_step(SCHEDULED, closed_at=at(7))
    assert (step.result, step.ended_at) == (StepResult.CANCELLED, at(7))
