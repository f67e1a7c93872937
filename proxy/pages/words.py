"""Choose the words for a workspace from the table in codehub.words."""

from dataclasses import replace

from codehub.db.running_slots import RunningWorkspace
from codehub.db.views import WorkspaceView
from codehub.domain.failures import EXPLANATIONS
from codehub.domain.states import ErrorReason, Operation, Phase
from codehub.words import (
    DELETION_FAILED,
    FAILURES,
    HEADING_TO,
    OPERATIONS,
    PHASES,
    RECOVERING,
    UNKNOWN_FAILURE,
    FailureWords,
    WorkWords,
)

# By operation; between two operations by the desired state. The script finds them by these names.
UNDER_WAY: dict[str, WorkWords] = {
    **{operation.value: words for operation, words in OPERATIONS.items()},
    "RECOVERING": RECOVERING,
    **{f"TO_{desired}": words for desired, words in HEADING_TO.items()},
}


def failure(view: WorkspaceView) -> FailureWords:
    """Return what went wrong."""
    words = FAILURES[view.error_reason] if view.error_reason else UNKNOWN_FAILURE
    return replace(words, headline=DELETION_FAILED) if view.deleted_at else words


def under_way(view: WorkspaceView) -> str:
    """Return the key of UNDER_WAY for what is being done."""
    if view.operation is not Operation.NONE:
        return view.operation
    return "RECOVERING" if view.recovering else f"TO_{view.desired_state}"


def details(reason: ErrorReason | None, message: str | None) -> str | None:
    """Return the recorded message, or None if it only repeats the general explanation."""
    return None if reason and message == EXPLANATIONS[reason] else message


def slot_state(running: RunningWorkspace) -> str:
    """Return the state of a workspace that takes a running slot."""
    if running.is_stopping:
        work = HEADING_TO[running.desired_state]
        return f"{work.badge}…"
    if running.needs_person:
        return PHASES[Phase.ERROR].label
    if running.phase is Phase.RUNNING:
        return PHASES[Phase.RUNNING].label
    return f"{OPERATIONS[Operation.STARTING].badge}…"
