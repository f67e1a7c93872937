"""How to respond for a workspace, by its state and the kind of request. Pure; see docs/contract.md."""

from enum import StrEnum

from codehub.domain.attention import LifecycleState
from codehub.domain.states import DesiredState, Operation, Phase
from proxy.request_kind import RequestKind


class Decision(StrEnum):
    """What the proxy does with a request."""

    FORWARD = "forward"
    WAKE = "wake"
    FOLLOW = "follow"
    OFFER_START = "offer_start"
    OFFER_RESTORE = "offer_restore"
    EXPLAIN_ERROR = "explain_error"
    REFUSE = "refuse"


# An IDE that answers is usable even before the operation that started it is recorded as complete.
OPEN_DURING = frozenset({Operation.NONE, Operation.PROVISIONING, Operation.RESTORING, Operation.STARTING})

WHEN_SETTLED = {
    Phase.STANDBY: Decision.WAKE,
    Phase.ARCHIVED: Decision.OFFER_RESTORE,
    Phase.PENDING: Decision.OFFER_START,
}


def is_open(state: LifecycleState) -> bool:
    """Return whether the IDE takes requests. One about to stop takes none: they would be cut off."""
    wanted = state.desired_state is DesiredState.RUNNING
    return state.phase is Phase.RUNNING and wanted and state.operation in OPEN_DURING


def decide(state: LifecycleState, kind: RequestKind) -> Decision:
    """Return what to do. Only a client that waits may start a workspace; requests of open tabs never do."""
    if is_open(state):
        return Decision.FORWARD
    if state.needs_person:
        return Decision.EXPLAIN_ERROR
    if kind is RequestKind.BACKGROUND:
        return Decision.REFUSE
    if state.desired_state is DesiredState.RUNNING or not _is_settled(state):
        return Decision.FOLLOW
    return WHEN_SETTLED[state.phase]


def _is_settled(state: LifecycleState) -> bool:
    # A new workspace is PENDING until it is started, although its desired state is ARCHIVED.
    never_started = state.phase is Phase.PENDING and state.operation is Operation.NONE
    return state.phase in WHEN_SETTLED and (state.is_settled or never_started or state.is_interruptible)
