"""Disk limits that administrators set for single workspaces."""

from datetime import datetime

from codehub.db.disk_usage import set_disk_limit
from codehub.db.session import Database
from codehub.db.workspaces import lock_visible_workspace
from codehub.domain.conditions import WorkspaceId
from codehub.services.audit import Action, Actor, record
from codehub.services.errors import WorkspaceNotFound


async def limit_disk(
    database: Database, workspace_id: WorkspaceId, limit_bytes: int | None, *, now: datetime, by: Actor
) -> None:
    """Store a limit that replaces the installation's; None returns to that one, 0 means no limit."""
    async with database.transaction() as session:
        workspace = await lock_visible_workspace(session, workspace_id)
        if workspace is None:
            raise WorkspaceNotFound(workspace_id)
        await set_disk_limit(session, workspace_id, limit_bytes, now)
        detail = {"limit_bytes": limit_bytes}
        await record(
            session,
            Action.DISK_LIMIT,
            now,
            by=by,
            target=workspace.metadata.name,
            target_id=workspace_id,
            detail=detail,
        )
