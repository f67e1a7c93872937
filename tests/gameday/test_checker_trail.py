"""The checks of audit trails and workflow runs."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from codehub.db.events import EventKind, EventView
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from gameday.checks.audit_trail import WORKFLOWS, WorkflowRun, check_overlap, check_reasons, check_trail
from tests.gameday.histories import BEGAN, CLAIMED, COMPLETED, CREATED, line, row


def test_a_complete_trail_explains_the_row() -> None:
    assert not list(check_trail(row(), [CREATED, CLAIMED, COMPLETED]))


def test_a_running_operation_needs_no_end() -> None:
    busy = row(phase=Phase.PENDING, operation=Operation.PROVISIONING)
    assert not list(check_trail(busy, [CREATED, CLAIMED]))


@pytest.mark.parametrize(
    ("trail", "words"),
    [
        ([], "does not begin with its creation"),
        ([CLAIMED, COMPLETED], "does not begin with its creation"),
        ([CREATED, CLAIMED, CLAIMED, COMPLETED], "before PROVISIONING ended"),
        ([CREATED, COMPLETED], "without a claim"),
        (
            [CREATED, CLAIMED, line(3, EventKind.OPERATION_COMPLETED, Phase.STANDBY, Operation.STARTING)],
            "STARTING ended (event 3) without a claim",
        ),
        (
            [CREATED, CLAIMED, line(3, EventKind.PHASE_CHANGED, Phase.STANDBY)],
            "the operation is PROVISIONING, but it is NONE",
        ),
        ([CREATED, CLAIMED, COMPLETED, line(5, EventKind.PHASE_CHANGED, Phase.RUNNING)], "ends in RUNNING"),
        (
            [CREATED, CLAIMED, COMPLETED, line(5, EventKind.STATE_REQUESTED, Phase.STANDBY, to="RUNNING")],
            "last requests RUNNING",
        ),
    ],
)
def test_a_trail_that_does_not_explain_the_row_is_a_violation(trail: Sequence[EventView], words: str) -> None:
    [problem] = check_trail(row(), trail)
    assert words in problem


def test_a_deletion_is_explained_by_its_request() -> None:
    gone = row(phase=Phase.DELETED, desired_state=DesiredState.DELETED, deleted=True)
    asked = line(5, EventKind.STATE_REQUESTED, Phase.STANDBY, to="DELETED")
    ended = line(6, EventKind.PHASE_CHANGED, Phase.DELETED)
    assert not list(check_trail(gone, [CREATED, CLAIMED, COMPLETED, asked, ended]))


def test_the_faults_must_explain_every_recorded_error() -> None:
    trail = [
        line(5, EventKind.ATTEMPT_FAILED, Phase.STANDBY, Operation.STARTING, ErrorReason.UNREACHABLE),
        line(6, EventKind.ERROR_FOUND, Phase.ERROR, None, ErrorReason.DATA_LOST, message="Files are gone."),
        line(7, EventKind.RECOVERED, Phase.STANDBY),
    ]
    assert list(check_reasons(trail)) == ["No fault explains DataLost (event 6): Files are gone."]


def _run(kind: str, began: float, ended: float | None) -> WorkflowRun:
    end = None if ended is None else BEGAN + timedelta(seconds=ended)
    return WorkflowRun(kind, BEGAN + timedelta(seconds=began), end)


def test_consecutive_runs_do_not_overlap() -> None:
    assert not list(check_overlap([_run("Stopping", 3, None), _run("Starting", 0, 3)]))


@pytest.mark.parametrize("ended", [2.5, None])
def test_a_run_that_begins_before_another_ends_is_a_violation(ended: float | None) -> None:
    [problem] = check_overlap([_run("Starting", 0, ended), _run("Stopping", 2, 4)])
    assert problem.startswith("Stopping began")


def test_the_workflows_of_operations_are_known_by_name() -> None:
    assert "CreateEmptyArchive" in WORKFLOWS
    assert "Archiving" in WORKFLOWS
