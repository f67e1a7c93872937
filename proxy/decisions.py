"""What to answer for a workspace, by its phase and the kind of request: pure, SPEC §7."""

from enum import StrEnum

from codehub.domain.attention import Standing
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


def is_open(standing: Standing) -> bool:
    """Whether its IDE takes requests. What is about to be stopped takes none: they would be cut off."""
    wanted = standing.desired_state is DesiredState.RUNNING
    return standing.phase is Phase.RUNNING and wanted and standing.operation in LEAVES_OPEN


def decide(standing: Standing, ask: RequestKind) -> Decision:
    """Only somebody who waits for the answer may wake a workspace: an open tab's requests never do."""
    if is_open(standing):
        return Decision.FORWARD
    if standing.needs_person:
        return Decision.EXPLAIN_ERROR
    if ask is RequestKind.BACKGROUND:
        return Decision.REFUSE
    if standing.desired_state is DesiredState.RUNNING or not _rests(standing):
        return Decision.FOLLOW
    return AT_REST[standing.phase]


def _rests(standing: Standing) -> bool:
    # A fresh workspace that nobody started is PENDING though ARCHIVED is what it should be.
    never_started = standing.phase is Phase.PENDING and standing.operation is Operation.NONE
    return standing.phase in AT_REST and (standing.is_settled or never_started or standing.can_change_course)
