"""When workspaces were used, and who owns them."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import DateTime, Select, Uuid, Values, column, func, select, update, values
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import Workspace, WorkspaceUsage
from codehub.domain.conditions import WorkspaceId

BUCKET = timedelta(minutes=15)


def bucket_of(moment: datetime) -> datetime:
    """Return the start of the quarter of an hour."""
    seconds = BUCKET.total_seconds()
    return datetime.fromtimestamp(moment.timestamp() // seconds * seconds, UTC)


async def store_last_access(session: AsyncSession, used_at: Mapping[WorkspaceId, datetime]) -> None:
    """Store the latest use of each; an older time changes nothing."""
    if not used_at:
        return
    new = _values(used_at)
    await session.execute(
        update(Workspace)
        .where(Workspace.id == new.c.id)
        .values(last_access_at=func.greatest(Workspace.last_access_at, new.c.used_at))
        .execution_options(synchronize_session=False)
    )


async def record_usage(session: AsyncSession, used_at: Mapping[WorkspaceId, datetime]) -> None:
    """Record the quarters of an hour in which these were used; ignore unknown workspaces."""
    if not used_at:
        return
    new = _values({workspace_id: bucket_of(moment) for workspace_id, moment in used_at.items()})
    existing = select(new.c.id, new.c.used_at).join(Workspace, Workspace.id == new.c.id)
    await session.execute(
        insert(WorkspaceUsage).from_select(["workspace_id", "bucket"], existing).on_conflict_do_nothing()
    )


async def list_usage(session: AsyncSession, workspace_id: WorkspaceId, since: datetime) -> list[datetime]:
    """Return the quarters of an hour since `since` in which the workspace was used, in order."""
    return list(await session.scalars(select_usage(workspace_id, since)))


async def load_owner_ids(session: AsyncSession, ids: Collection[WorkspaceId]) -> dict[WorkspaceId, str]:
    """Return the owners of these workspaces."""
    rows = await session.execute(
        select(Workspace.id, Workspace.owner_user_id).where(Workspace.id.in_([UUID(each) for each in ids]))
    )
    return {WorkspaceId(str(row[0])): str(row[1]) for row in rows}


def select_usage(workspace_id: WorkspaceId, since: datetime) -> Select[datetime]:
    return (
        select(WorkspaceUsage.bucket)
        .where(WorkspaceUsage.workspace_id == UUID(workspace_id), WorkspaceUsage.bucket >= since)
        .order_by(WorkspaceUsage.bucket)
    )


def _values(used_at: Mapping[WorkspaceId, datetime]) -> Values:
    columns = column("id", Uuid()), column("used_at", DateTime(timezone=True))
    rows = sorted((UUID(workspace_id), moment) for workspace_id, moment in used_at.items())
    return values(*columns, name="new_uses").data(rows)
