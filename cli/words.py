"""What the words of the API mean, for people."""

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.text import Text

from cli.errors import printable
from cli.formatting import at, now, parse_time, rough
from codehub.domain.conditions import Reason
from codehub.domain.states import DesiredState, Operation, Phase

Workspace = Mapping[str, Any]

PHASE_STYLES = {
    Phase.RUNNING: "green",
    Phase.STANDBY: "cyan",
    Phase.ARCHIVED: "blue",
    Phase.ERROR: "bold red",
    Phase.DELETING: "yellow",
    Phase.PENDING: "dim",
}
PHASES = {
    Phase.PENDING: "it has no home yet",
    Phase.ARCHIVED: "its files are in an archive; it takes no disk and no compute",
    Phase.STANDBY: "its files are on disk; nothing runs",
    Phase.RUNNING: "its editor runs",
    Phase.ERROR: "something needs you",
    Phase.DELETING: "it is being deleted",
    Phase.DELETED: "it is deleted",
}
OPERATIONS = {
    Operation.PROVISIONING: "Making a home",
    Operation.RESTORING: "Restoring the files",
    Operation.STARTING: "Starting the editor",
    Operation.STOPPING: "Stopping",
    Operation.ARCHIVING: "Archiving the files",
    Operation.CREATE_EMPTY_ARCHIVE: "Preparing an empty archive",
    Operation.DELETING: "Deleting",
}
CONDITIONS = {
    "storage.volume_ready": "files on disk",
    "storage.archive_ready": "archive",
    "infra.container_ready": "editor",
    "infra.container_answers": "health check",
    "policy.healthy": "health",
}
# Worth a line only where they are not met.
ONLY_IF_FALSE = {"infra.container_answers"}
# By reason; the API's own sentences speak of volumes and containers.
PLAIN = {
    Reason.NOT_OBSERVED: "not looked at yet",
    Reason.COMPLETE: "all there",
    Reason.INCOMPLETE: "leftovers; the archive has the files",
    Reason.VANISHED: "gone, though the newest files were here",
    Reason.READABLE: "can be read",
    Reason.GONE: "gone",
    Reason.NO_ARCHIVE: "none yet",
    Reason.READY: "answers",
    Reason.NOT_READY: "does not run or does not answer",
    Reason.NOT_ANSWERING: "not answered, though the editor runs",
    Reason.ABSENT: "none",
    Reason.HEALTHY: "nothing is wrong",
}
NEXT = {DesiredState.STANDBY: "stops", DesiredState.ARCHIVED: "is archived"}


def phase_cell(workspace: Workspace) -> Text:
    phase = workspace["phase"]
    return Text(phase, PHASE_STYLES.get(Phase.ERROR if workspace["needs_person"] else phase, ""))


def phase_meaning(workspace: Workspace) -> str:
    if workspace["needs_person"]:
        return "its deletion failed and needs you" if workspace["deleted_at"] else PHASES[Phase.ERROR]
    return PHASES.get(workspace["phase"], "")


def command(verb: str, workspace: Workspace) -> str:
    """What to type, also for a name with blanks."""
    return f"codehub ws {verb} {shlex.quote(workspace['name'])}"


def doing(workspace: Workspace) -> str:
    """What is being done to it, or nothing."""
    if workspace["recovering"]:
        return "Having another look"
    operation = workspace["operation"]
    return "" if operation == Operation.NONE else str(OPERATIONS.get(operation, operation))


def under_way(workspace: Workspace) -> str:
    """The same; between two operations, where it goes, and what it waits for."""
    if waiting := workspace["waiting"]:
        return f"{waiting['message']} It has waited for {rough(now() - parse_time(waiting['since']))}."
    if words := doing(workspace):
        return words
    return "" if workspace["settled"] else f"On its way to {workspace['desired_state']}"


def what_next(workspace: Workspace, now: datetime | None = None) -> str:
    """What happens by itself, and when."""
    if workspace["needs_person"]:
        return "waits for you"
    change = workspace["next_change"]
    if change is None:
        return ""
    return f"{NEXT.get(change['to'], change['to'])} {at(change['at'], now)} unless used"


def condition_words(condition: Workspace, now: datetime) -> str:
    since = condition["last_transition_time"]
    for_ = f" (for {rough(now - datetime.fromisoformat(since))})" if since else ""
    return printable(f"{PLAIN.get(condition['reason'], condition['message'])}{for_}")
