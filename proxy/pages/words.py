"""What is said, in tables: what goes on, what went wrong, what may be chosen, who takes a place."""

from dataclasses import dataclass

from codehub.db.running_slots import RunningWorkspace
from codehub.db.views import WorkspaceView
from codehub.domain.failures import EXPLANATIONS
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase


@dataclass(frozen=True)
class Words:
    """A headline, and a sentence or two below it."""

    headline: str
    detail: str


_PREPARING = Words("Preparing your workspace", "It gets a home for your files.")
_STOPPING = Words("Stopping your workspace", "Your files stay on its disk.")
_ARCHIVING = Words(
    "Archiving your files", "Its disk is given back only when the archive is complete: nothing gets lost."
)
_DELETING = Words("Deleting this workspace", "It cannot be opened any more.")

# By operation; between two operations by where the workspace shall go. The script finds them by these names.
UNDER_WAY = {
    Operation.PROVISIONING: _PREPARING,
    Operation.RESTORING: Words("Restoring your files", "They come back exactly as they were archived."),
    Operation.STARTING: Words(
        "Starting your workspace", "Your files are in place. The editor opens here by itself."
    ),
    Operation.STOPPING: _STOPPING,
    Operation.ARCHIVING: _ARCHIVING,
    Operation.CREATE_EMPTY_ARCHIVE: _PREPARING,
    Operation.DELETING: _DELETING,
    "RECOVERING": Words(
        "Having another look", "CodeHub checks where your files are, and goes on from there."
    ),
    f"TO_{DesiredState.RUNNING}": Words(
        "Getting your workspace ready", "The editor opens here by itself as soon as it is there."
    ),
    f"TO_{DesiredState.STANDBY}": _STOPPING,
    f"TO_{DesiredState.ARCHIVED}": _ARCHIVING,
    f"TO_{DesiredState.DELETED}": _DELETING,
}

# Where it ended, if that is not where the page waited for it.
ENDED = {
    Phase.PENDING: Words("It was not started", "There is nothing to open yet."),
    Phase.ARCHIVED: Words("It was archived", "Your files are safe in its archive."),
    Phase.STANDBY: Words("It was stopped", "Your files are safe on its disk."),
    Phase.RUNNING: Words("It is running", "The editor is not there yet."),
    Phase.DELETING: Words("It is being deleted", "It cannot be opened any more."),
    Phase.DELETED: Words("It was deleted", "It cannot be opened any more."),
}

# What to do goes with a button; what happened is told in EXPLANATIONS.
_TRY_AGAIN = "Try again. If it happens once more, show this page to your administrator."
FAILURES = {
    ErrorReason.TIMEOUT: Words("It took too long", _TRY_AGAIN),
    ErrorReason.RETRY_EXCEEDED: Words("It did not work", _TRY_AGAIN),
    ErrorReason.ACTION_FAILED: Words("It did not work", _TRY_AGAIN),
    ErrorReason.DATA_LOST: Words(
        "Files are missing",
        "If their disk can be put back, do that and try again. Nothing is given up before you say so.",
    ),
    ErrorReason.UNREACHABLE: Words("Something does not answer", _TRY_AGAIN),
    ErrorReason.IMAGE_PULL_FAILED: Words(
        "It cannot start",
        "Check the name of its image and that the registry can be reached, then try again.",
    ),
    ErrorReason.CONTAINER_WITHOUT_VOLUME: Words(
        "The editor is without its files",
        "Try again: CodeHub ends that editor, looks for the files and starts from there.",
    ),
    ErrorReason.ARCHIVE_CORRUPTED: Words(
        "The archive is damaged",
        "If it can be repaired, do that and try again. Nothing is given up before you say so.",
    ),
}
UNKNOWN_FAILURE = Words("Something went wrong", _TRY_AGAIN)

CHOICES = {
    RecoverChoice.RETRY: "Try again",
    RecoverChoice.RESTORE_ARCHIVE: "Restore this archive",
    RecoverChoice.USE_DISK: "Use what is on the disk",
    RecoverChoice.START_EMPTY: "Start with an empty home",
}


def failure(view: WorkspaceView) -> Words:
    """What went wrong, for whoever has to decide."""
    said = FAILURES[view.error_reason] if view.error_reason else UNKNOWN_FAILURE
    return Words("It could not be deleted", said.detail) if view.deleted_at else said


def under_way(view: WorkspaceView) -> str:
    """The name of what goes on, among those of UNDER_WAY."""
    if view.operation is not Operation.NONE:
        return view.operation
    return "RECOVERING" if view.recovering else f"TO_{view.desired_state}"


def what_happened(reason: ErrorReason | None) -> str | None:
    """The first sentence of the explanation: the others speak to callers of the API."""
    return EXPLANATIONS[reason].partition(". ")[0].rstrip(".") + "." if reason else None


def in_detail(reason: ErrorReason | None, message: str | None) -> str | None:
    """What was noted, unless that is the explanation itself."""
    return None if reason and message == EXPLANATIONS[reason] else message


def place_taken_by(running: RunningWorkspace) -> str:
    if running.is_stopping:
        return "Deleting…" if running.desired_state is DesiredState.DELETED else "Stopping…"
    if running.needs_person:
        return "Has a problem"
    return "Running" if running.phase is Phase.RUNNING else "Starting"
