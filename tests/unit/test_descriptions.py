"""Descriptions in the Temporal Web UI, and the reasons of failed attempts."""

from dataclasses import replace

import pytest
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    RetryState,
    TerminatedError,
    TimeoutError,  # noqa: A004 (Temporal's own)
    TimeoutType,
)

from codehub.domain.failures import EXPLANATIONS
from codehub.domain.states import DesiredState, ErrorReason, Operation
from tests.unit.domain.builders import standby
from workflows.descriptions import NO_DATABASE, describe, failure_of, interruption_of


def child_error(*causes: BaseException) -> ChildWorkflowError:
    """Return an error of a child workflow with this chain of causes."""
    error = ChildWorkflowError(
        "child failed",
        namespace="default",
        workflow_id="w",
        run_id="r",
        workflow_type="Starting",
        initiated_event_id=1,
        started_event_id=2,
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )
    outer: BaseException = error
    for cause in causes:
        outer.__cause__ = cause
        outer = cause
    return error


def activity_error() -> ActivityError:
    return ActivityError(
        "activity failed",
        scheduled_event_id=1,
        started_event_id=2,
        identity="worker",
        activity_type="start_instance",
        activity_id="1",
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )


def timeout(kind: TimeoutType) -> TimeoutError:
    return TimeoutError("late", type=kind, last_heartbeat_details=[])


def test_a_failure_keeps_its_reason_and_message() -> None:
    failed = ApplicationError("It broke.", type="Unreachable", non_retryable=True)
    deepest = ApplicationError("Transient: It broke.", type="Transient")
    assert failure_of(child_error(activity_error(), failed, deepest)) == (
        ErrorReason.UNREACHABLE,
        "It broke.",
    )


@pytest.mark.parametrize("kind", [TimeoutType.START_TO_CLOSE, TimeoutType.SCHEDULE_TO_CLOSE])
def test_a_step_that_took_too_long_is_a_timeout(kind: TimeoutType) -> None:
    assert failure_of(child_error(activity_error(), timeout(kind))) == (
        ErrorReason.TIMEOUT,
        EXPLANATIONS[ErrorReason.TIMEOUT],
    )


def test_a_worker_that_was_lost_too_often_is_a_failed_action() -> None:
    reason, _ = failure_of(child_error(activity_error(), timeout(TimeoutType.HEARTBEAT)))
    assert reason is ErrorReason.ACTION_FAILED


def test_an_unexpected_error_is_a_failed_action() -> None:
    assert failure_of(child_error(TerminatedError("by an operator"))) == (
        ErrorReason.ACTION_FAILED,
        "TerminatedError: by an operator",
    )


def test_a_workspace_is_described_in_one_line() -> None:
    assert describe(None) == "There is no such workspace."
    assert describe(standby()) == "STANDBY, wanted STANDBY"
    failing = replace(
        standby(DesiredState.RUNNING),
        operation=Operation.STARTING,
        error_reason=ErrorReason.UNREACHABLE,
        error_message="Docker does not answer.",
    )
    assert describe(failing) == "STANDBY, wanted RUNNING, STARTING: Unreachable (Docker does not answer.)"


def interrupted(cause: BaseException) -> ActivityError:
    error = activity_error()
    error.__cause__ = cause
    return error


def test_only_an_outage_of_the_database_is_described_as_one() -> None:
    away = interrupted(ApplicationError("down", type="DatabaseUnavailable"))
    late = interrupted(TimeoutError("late", type=TimeoutType.START_TO_CLOSE, last_heartbeat_details=[]))
    assert interruption_of(away) == interruption_of(late) == NO_DATABASE
    told = interruption_of(interrupted(ApplicationError("'phase'", type="KeyError")))
    assert told == "A step failed (KeyError: 'phase'). The next sweep goes on from here."
