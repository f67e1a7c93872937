"""Deleting a workspace, and undoing a deletion."""

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.archives import is_collected, unmark_orphans
from codehub.db.events import EventKind
from codehub.db.session import Database
from codehub.db.snapshots import load_snapshot
from codehub.db.workspaces import save_deletion
from codehub.domain.conditions import Snapshot, WorkspaceId
from codehub.domain.deletion import UndeleteRefusal, request_deletion, undelete, undelete_refusal
from codehub.domain.states import Phase
from codehub.services.errors import InvalidState, WorkspaceNotFound
from codehub.services.requests import RequestContext, record_request, require_idle

REFUSALS = {
    UndeleteRefusal.NOT_DELETED: "The workspace is not deleted.",
    UndeleteRefusal.PURGED: "The workspace was deleted without a last archive, so it cannot be undeleted.",
    UndeleteRefusal.NO_ARCHIVE: "The workspace left no archive, so it cannot be undeleted.",
}
COLLECTED = "The workspace's archive has been removed, so it cannot be undeleted."


async def delete_workspace(
    database: Database, workspace_id: WorkspaceId, *, purge: bool, context: RequestContext
) -> bool:
    """Delete the workspace, with a last archive unless it is purged; return whether it is purged.

    A deletion in progress, or one that has halted, can still become a purge. Any other repetition changes
    nothing.
    """
    async with database.transaction() as session:
        snapshot = await _lock(session, workspace_id)
        if snapshot.phase is Phase.DELETED:
            raise WorkspaceNotFound(workspace_id)
        requested = request_deletion(snapshot, purge=purge)
        if requested != snapshot:
            require_idle(snapshot.operation, snapshot.claimed_at)
            await save_deletion(session, requested, context.now)
            detail = {
                "from": snapshot.desired_state,
                "to": requested.desired_state,
                "purge": requested.purge,
            }
            await record_request(
                session, context, workspace_id, EventKind.STATE_REQUESTED, snapshot.phase, detail=detail
            )
    return requested.purge


async def undelete_workspace(
    database: Database, workspace_id: WorkspaceId, *, context: RequestContext
) -> None:
    """Undo a deletion while its last archive exists; the workspace goes to ARCHIVED."""
    async with database.transaction() as session:
        snapshot = await _lock(session, workspace_id)
        require_idle(snapshot.operation, snapshot.claimed_at)
        if (refusal := undelete_refusal(snapshot)) is not None:
            raise InvalidState(snapshot.phase, REFUSALS[refusal])
        await _keep_archive(session, snapshot)
        undeleted = undelete(snapshot)
        await save_deletion(session, undeleted, context.now)
        detail = {"from": snapshot.desired_state, "to": undeleted.desired_state}
        await record_request(
            session, context, workspace_id, EventKind.UNDELETED, undeleted.phase, detail=detail
        )


async def _lock(session: AsyncSession, workspace_id: WorkspaceId) -> Snapshot:
    snapshot = await load_snapshot(session, workspace_id, for_update=True)
    if snapshot is None:
        raise WorkspaceNotFound(workspace_id)
    return snapshot


async def _keep_archive(session: AsyncSession, snapshot: Snapshot) -> None:
    """Raise InvalidState if the collector removes the archive; the lock of the row decides who is first."""
    key = snapshot.archive_key
    if key is None:
        return
    if await is_collected(session, key):
        raise InvalidState(snapshot.phase, COLLECTED)
    # If the workspace is deleted again, the grace period of its archive starts over.
    await unmark_orphans(session, {key})
