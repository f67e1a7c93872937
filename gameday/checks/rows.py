"""The workspaces and audit trails as the checks read them from the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from codehub.db.events import EventView, list_events
from codehub.db.models import Workspace
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId, conditions_from_json
from codehub.domain.garbage import ArchiveOwner
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase

# More than any game produces: read the whole trail at once.
ALL_EVENTS = 1_000_000
COLUMNS = (
    Workspace.id,
    Workspace.owner_user_id,
    Workspace.name,
    Workspace.phase,
    Workspace.operation,
    Workspace.op_started_at,
    Workspace.desired_state,
    Workspace.deleted_at,
    Workspace.purge,
    Workspace.archive_key,
    Workspace.archive_op_id,
    Workspace.error_reason,
    Workspace.error_message,
    Workspace.version,
    Workspace.conditions,
)


@dataclass(frozen=True)
class Row:
    """One workspace, deleted or not."""

    workspace_id: WorkspaceId
    owner_id: str
    name: str
    phase: Phase
    operation: Operation
    desired_state: DesiredState
    deleted: bool
    purge: bool
    archive_key: str | None
    archive_op_id: str | None
    error_reason: ErrorReason | None
    error_message: str | None
    version: int
    container_exists: bool
    volume_is_complete: bool = False
    deleted_at: datetime | None = None
    claimed_at: datetime | None = None

    @property
    def is_converged(self) -> bool:
        return self.operation is Operation.NONE and self.phase.value == self.desired_state.value

    @property
    def is_uploading(self) -> bool:
        """Return whether an upload is claimed but not committed, so that the home is still on disk."""
        return self.operation is Operation.ARCHIVING and self.volume_is_complete

    @property
    def archive_owner(self) -> ArchiveOwner:
        """Return the workspace as the collector sees it; after an undelete it counts as archived."""
        undeleted = self.phase is Phase.DELETED and not self.deleted
        phase = Phase.ARCHIVED if undeleted else self.phase
        return ArchiveOwner(
            phase,
            self.archive_key,
            self.archive_op_id,
            self.error_reason,
            self.deleted_at,
            purge=self.purge,
        )


async def read_rows(database: Database) -> list[Row]:
    async with database.transaction() as session:
        found = await session.execute(select(*COLUMNS).order_by(Workspace.created_at, Workspace.id))
        return [
            Row(
                workspace_id=WorkspaceId(str(row.id)),
                owner_id=str(row.owner_user_id),
                name=row.name,
                phase=Phase(row.phase),
                operation=Operation(row.operation),
                desired_state=DesiredState(row.desired_state),
                deleted=row.deleted_at is not None,
                purge=row.purge,
                archive_key=row.archive_key,
                archive_op_id=str(row.archive_op_id) if row.archive_op_id else None,
                error_reason=ErrorReason(row.error_reason) if row.error_reason else None,
                error_message=row.error_message,
                version=row.version,
                container_exists=conditions_from_json(row.conditions).container_exists,
                volume_is_complete=conditions_from_json(row.conditions).volume_ready.is_true,
                deleted_at=row.deleted_at,
                claimed_at=row.op_started_at,
            )
            for row in found
        ]


async def read_trails(
    database: Database, workspace_ids: Sequence[WorkspaceId]
) -> Mapping[str, list[EventView]]:
    """Return the audit trail of each workspace, oldest event first."""
    async with database.transaction() as session:
        return {
            each: (await list_events(session, each, before=None, limit=ALL_EVENTS))[::-1]
            for each in workspace_ids
        }
