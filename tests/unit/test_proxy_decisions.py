"""Decisions for every phase, operation, desired state and kind of request; see docs/contract.md."""

from dataclasses import replace
from itertools import product

import pytest

from codehub.domain.attention import LifecycleState
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from proxy.decisions import Decision, decide
from proxy.request_kind import RequestKind

NONE = Operation.NONE
STOPPING = (
    Operation.STOPPING,
    Operation.ARCHIVING,
    Operation.CREATE_EMPTY_ARCHIVE,
    Operation.DELETING,
)
STARTING = (Operation.PROVISIONING, Operation.RESTORING, Operation.STARTING)
EVERY_STATE = [LifecycleState(*each) for each in product(Phase, Operation, DesiredState, (False, True))]


def settled(phase: Phase) -> LifecycleState:
    wanted = DesiredState.ARCHIVED if phase is Phase.PENDING else DesiredState(phase.value)
    return LifecycleState(phase, NONE, wanted)


@pytest.mark.parametrize("kind", RequestKind)
def test_a_running_workspace_gets_every_kind_of_request(kind: RequestKind) -> None:
    assert decide(settled(Phase.RUNNING), kind) is Decision.FORWARD


@pytest.mark.parametrize("operation", STARTING)
def test_an_ide_that_answers_is_used_before_its_start_is_complete(operation: Operation) -> None:
    state = LifecycleState(Phase.RUNNING, operation, DesiredState.RUNNING)
    assert decide(state, RequestKind.BACKGROUND) is Decision.FORWARD


@pytest.mark.parametrize("operation", STOPPING)
def test_a_workspace_that_is_stopping_gets_no_requests(operation: Operation) -> None:
    for desired in DesiredState:
        assert (
            decide(LifecycleState(Phase.RUNNING, operation, desired), RequestKind.NAVIGATION)
            is Decision.FOLLOW
        )


@pytest.mark.parametrize("desired", set(DesiredState) - {DesiredState.RUNNING})
def test_a_workspace_about_to_stop_gets_no_requests(desired: DesiredState) -> None:
    assert decide(LifecycleState(Phase.RUNNING, NONE, desired), RequestKind.NAVIGATION) is Decision.FOLLOW


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (Phase.STANDBY, Decision.WAKE),
        (Phase.ARCHIVED, Decision.OFFER_RESTORE),
        (Phase.PENDING, Decision.OFFER_START),
    ],
)
@pytest.mark.parametrize("kind", [RequestKind.NAVIGATION, RequestKind.WAKING])
def test_a_settled_workspace_is_started_or_offered(
    phase: Phase, expected: Decision, kind: RequestKind
) -> None:
    assert decide(settled(phase), kind) is expected


@pytest.mark.parametrize("phase", [Phase.STANDBY, Phase.ARCHIVED, Phase.PENDING])
def test_a_starting_workspace_is_followed(phase: Phase) -> None:
    for operation in (NONE, *STARTING):
        state = LifecycleState(phase, operation, DesiredState.RUNNING)
        assert decide(state, RequestKind.NAVIGATION) is Decision.FOLLOW


@pytest.mark.parametrize("kind", RequestKind)
def test_errors_are_explained(kind: RequestKind) -> None:
    for desired in DesiredState:
        assert decide(LifecycleState(Phase.ERROR, NONE, desired), kind) is Decision.EXPLAIN_ERROR


@pytest.mark.parametrize("kind", RequestKind)
def test_a_failed_deletion_is_explained(kind: RequestKind) -> None:
    failed = LifecycleState(
        Phase.DELETING, NONE, DesiredState.DELETED, deleted=True, error_reason=ErrorReason.RETRY_EXCEEDED
    )
    assert decide(failed, kind) is Decision.EXPLAIN_ERROR
    purged = replace(failed, purge=True)
    assert decide(purged, RequestKind.NAVIGATION) is Decision.FOLLOW


def test_a_requested_recovery_is_followed() -> None:
    state = LifecycleState(Phase.ERROR, NONE, DesiredState.RUNNING, recovering=True)
    assert decide(state, RequestKind.NAVIGATION) is Decision.FOLLOW


def test_background_requests_never_start_a_workspace() -> None:
    for state in EVERY_STATE:
        assert decide(state, RequestKind.BACKGROUND) in {
            Decision.FORWARD,
            Decision.REFUSE,
            Decision.EXPLAIN_ERROR,
        }


def test_only_a_settled_standby_is_started() -> None:
    started = [each for each in EVERY_STATE if decide(each, RequestKind.NAVIGATION) is Decision.WAKE]
    assert started == [LifecycleState(Phase.STANDBY, NONE, DesiredState.STANDBY)]


def test_requests_are_forwarded_only_if_the_workspace_runs_and_should_run() -> None:
    for state in EVERY_STATE:
        if decide(state, RequestKind.NAVIGATION) is Decision.FORWARD:
            assert state.phase is Phase.RUNNING
            assert state.desired_state is DesiredState.RUNNING


def test_every_case_has_a_decision() -> None:
    for state, kind in product(EVERY_STATE, RequestKind):
        assert decide(state, kind) in Decision
