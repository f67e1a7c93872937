"""How long what is over is remembered."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.domain.states import Operation, Phase

DEFAULT = timedelta(days=90)


@dataclass(frozen=True)
class RetentionPeriods:
    """How long rows are kept after what they tell of has ended."""

    workspaces: timedelta = DEFAULT
    archives: timedelta = DEFAULT
    events: timedelta = DEFAULT
    sessions: timedelta = DEFAULT
    tokens: timedelta = DEFAULT
    # People look at the last day; a week leaves room to ask for more.
    usage: timedelta = timedelta(days=7)


@dataclass(frozen=True)
class DeletedWorkspace:
    """What decides whether a workspace's row may go."""

    phase: Phase
    operation: Operation
    deleted_at: datetime | None
    has_archives: bool


def may_forget(workspace: DeletedWorkspace, deleted_before: datetime) -> bool:
    """Whether nothing is left of it but its row; the row goes last, because the collector looks at it."""
    is_over = workspace.phase is Phase.DELETED and workspace.operation is Operation.NONE
    if not is_over or workspace.deleted_at is None or workspace.has_archives:
        return False
    return workspace.deleted_at < deleted_before
