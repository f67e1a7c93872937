"""SPEC §7 as a table: every phase, operation, desired state and kind of request."""

from dataclasses import replace
from itertools import product

import pytest

from codehub.domain.attention import LifecycleState
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from proxy.decisions import Decision, decide
from proxy.request_kind import RequestKind

NONE = Operation.NONE
ENDING = (
    Operation.STOPPING,
    Operation.ARCHIVING,
    Operation.CREATE_EMPTY_ARCHIVE,
    Operation.DELETING,
)
BEGINNING = (Operation.PROVISIONING, Operation.RESTORING, Operation.STARTING)
EVERY_STATE = [LifecycleState(*each) for each in product(Phase, Operation, DesiredState, (False, True))]


def at_rest(phase: Phase) -> LifecycleState:
    wanted = DesiredState.ARCHIVED if phase is Phase.PENDING else DesiredState(phase.value)
    return LifecycleState(phase, NONE, wanted)


@pytest.mark.parametrize("ask", RequestKind)
def test_running_is_forwarded_whoever_asks(ask: RequestKind) -> None:
    assert decide(at_rest(Phase.RUNNING), ask) is Decision.FORWARD


@pytest.mark.parametrize("operation", BEGINNING)
def test_an_ide_that_answers_is_used_before_its_start_is_written_off(operation: Operation) -> None:
    state = LifecycleState(Phase.RUNNING, operation, DesiredState.RUNNING)
    assert decide(state, RequestKind.BACKGROUND) is Decision.FORWARD


@pytest.mark.parametrize("operation", ENDING)
def test_what_is_being_ended_is_not_forwarded_to(operation: Operation) -> None:
    for desired in DesiredState:
        assert (
            decide(LifecycleState(Phase.RUNNING, operation, desired), RequestKind.NAVIGATION)
            is Decision.FOLLOW
        )


@pytest.mark.parametrize("desired", set(DesiredState) - {DesiredState.RUNNING})
def test_what_is_to_be_stopped_is_not_forwarded_to(desired: DesiredState) -> None:
    assert decide(LifecycleState(Phase.RUNNING, NONE, desired), RequestKind.NAVIGATION) is Decision.FOLLOW


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (Phase.STANDBY, Decision.WAKE),
        (Phase.ARCHIVED, Decision.OFFER_RESTORE),
        (Phase.PENDING, Decision.OFFER_START),
    ],
)
@pytest.mark.parametrize("ask", [RequestKind.NAVIGATION, RequestKind.WAKING])
def test_what_rests_is_offered_or_woken(phase: Phase, expected: Decision, ask: RequestKind) -> None:
    assert decide(at_rest(phase), ask) is expected


@pytest.mark.parametrize("phase", [Phase.STANDBY, Phase.ARCHIVED, Phase.PENDING])
def test_what_is_on_its_way_up_is_followed(phase: Phase) -> None:
    for operation in (NONE, *BEGINNING):
        state = LifecycleState(phase, operation, DesiredState.RUNNING)
        assert decide(state, RequestKind.NAVIGATION) is Decision.FOLLOW


@pytest.mark.parametrize("ask", RequestKind)
def test_errors_are_explained(ask: RequestKind) -> None:
    for desired in DesiredState:
        assert decide(LifecycleState(Phase.ERROR, NONE, desired), ask) is Decision.EXPLAIN_ERROR


@pytest.mark.parametrize("ask", RequestKind)
def test_a_halted_deletion_is_explained(ask: RequestKind) -> None:
    halted = LifecycleState(
        Phase.DELETING, NONE, DesiredState.DELETED, deleted=True, error_reason=ErrorReason.RETRY_EXCEEDED
    )
    assert decide(halted, ask) is Decision.EXPLAIN_ERROR
    purged = replace(halted, purge=True)
    assert decide(purged, RequestKind.NAVIGATION) is Decision.FOLLOW


def test_a_recovery_that_was_asked_for_is_followed() -> None:
    state = LifecycleState(Phase.ERROR, NONE, DesiredState.RUNNING, recovering=True)
    assert decide(state, RequestKind.NAVIGATION) is Decision.FOLLOW


def test_nothing_wakes_without_somebody_who_waits() -> None:
    for state in EVERY_STATE:
        assert decide(state, RequestKind.BACKGROUND) in {
            Decision.FORWARD,
            Decision.REFUSE,
            Decision.EXPLAIN_ERROR,
        }


def test_only_a_settled_standby_is_woken() -> None:
    woken = [each for each in EVERY_STATE if decide(each, RequestKind.NAVIGATION) is Decision.WAKE]
    assert woken == [LifecycleState(Phase.STANDBY, NONE, DesiredState.STANDBY)]


def test_only_what_runs_and_shall_run_is_forwarded_to() -> None:
    for state in EVERY_STATE:
        if decide(state, RequestKind.NAVIGATION) is Decision.FORWARD:
            assert state.phase is Phase.RUNNING
            assert state.desired_state is DesiredState.RUNNING


def test_every_case_has_an_answer() -> None:
    for state, ask in product(EVERY_STATE, RequestKind):
        assert decide(state, ask) in Decision
