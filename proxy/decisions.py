"""What to answer for a workspace, by its phase and the kind of request: pure, SPEC §7."""

from enum import StrEnum

from codehub.domain.attention import LifecycleState
from codehub.domain.states import DesiredState, Operation, Phase
from proxy.request_kind import RequestKind


class Decision(StrEnum):
    """What the router does."""

    FORWARD = "forward"
    WAKE = "wake"
    FOLLOW = "follow"
    OFFER_START = "offer_start"
    OFFER_RESTORE = "offer_restore"
    EXPLAIN_ERROR = "explain_error"
    REFUSE = "refuse"


# An IDE that answers may be used before the operation that started it has been written off.
LEAVES_OPEN = frozenset({Operation.NONE, Operation.PROVISIONING, Operation.RESTORING, Operation.STARTING})

AT_REST = {
    Phase.STANDBY: Decision.WAKE,
    Phase.ARCHIVED: Decision.OFFER_RESTORE,
    Phase.PENDING: Decision.OFFER_START,
}


def is_open(state: LifecycleState) -> bool:
    """Whether its IDE takes requests. What is about to be stopped takes none: they would be cut off."""
    wanted = state.desired_state is DesiredState.RUNNING
    return state.phase is Phase.RUNNING and wanted and state.operation in LEAVES_OPEN


def decide(state: LifecycleState, ask: RequestKind) -> Decision:
    """Only somebody who waits for the answer may wake a workspace: an open tab's requests never do."""
    if is_open(state):
        return Decision.FORWARD
    if state.needs_person:
        return Decision.EXPLAIN_ERROR
    if ask is RequestKind.BACKGROUND:
        return Decision.REFUSE
    if state.desired_state is DesiredState.RUNNING or not _rests(state):
        return Decision.FOLLOW
    return AT_REST[state.phase]


def _rests(state: LifecycleState) -> bool:
    # A fresh workspace that nobody started is PENDING though ARCHIVED is what it should be.
    never_started = state.phase is Phase.PENDING and state.operation is Operation.NONE
    return state.phase in AT_REST and (state.is_settled or never_started or state.is_interruptible)
