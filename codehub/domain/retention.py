"""How long rows are kept."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from codehub.domain.states import Operation, Phase

DEFAULT = timedelta(days=90)


@dataclass(frozen=True)
class RetentionPeriods:
    """How long rows are kept after what they describe has ended."""

    workspaces: timedelta = DEFAULT
    archives: timedelta = DEFAULT
    events: timedelta = DEFAULT
    sessions: timedelta = DEFAULT
    tokens: timedelta = DEFAULT
    audit_log: timedelta = timedelta(days=365)
    # People see the last day; a week leaves room to show more.
    usage: timedelta = timedelta(days=7)
    egress_log: timedelta = timedelta(days=7)


@dataclass(frozen=True)
class DeletedWorkspace:
    """What decides whether the row of a workspace may be removed."""

    phase: Phase
    operation: Operation
    deleted_at: datetime | None
    has_archives: bool


def may_forget(workspace: DeletedWorkspace, deleted_before: datetime) -> bool:
    """Return whether only the row is left; it goes last, because the collector needs it."""
    is_over = workspace.phase is Phase.DELETED and workspace.operation is Operation.NONE
    if not is_over or workspace.deleted_at is None or workspace.has_archives:
        return False
    return workspace.deleted_at < deleted_before
