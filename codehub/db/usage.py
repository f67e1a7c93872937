"""When workspaces were used, and whose they are."""

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
    """The beginning of its quarter of an hour."""
    seconds = BUCKET.total_seconds()
    return datetime.fromtimestamp(moment.timestamp() // seconds * seconds, UTC)


async def store_last_access(session: AsyncSession, used_at: Mapping[WorkspaceId, datetime]) -> None:
    """Store the latest use of each; an older one that arrives late changes nothing."""
    if not used_at:
        return
    news = _news(used_at)
    await session.execute(
        update(Workspace)
        .where(Workspace.id == news.c.id)
        .values(last_access_at=func.greatest(Workspace.last_access_at, news.c.used_at))
        .execution_options(synchronize_session=False)
    )


async def record_usage(session: AsyncSession, used_at: Mapping[WorkspaceId, datetime]) -> None:
    """Note the quarters of an hour in which these were used; what is no workspace is passed over."""
    if not used_at:
        return
    news = _news({workspace_id: bucket_of(moment) for workspace_id, moment in used_at.items()})
    existing = select(news.c.id, news.c.used_at).join(Workspace, Workspace.id == news.c.id)
    await session.execute(
        insert(WorkspaceUsage).from_select(["workspace_id", "bucket"], existing).on_conflict_do_nothing()
    )


async def list_usage(session: AsyncSession, workspace_id: WorkspaceId, since: datetime) -> list[datetime]:
    """The quarters of an hour in which it was used, from this one on, in order."""
    return list(await session.scalars(select_usage(workspace_id, since)))


async def load_owner_ids(session: AsyncSession, ids: Collection[WorkspaceId]) -> dict[WorkspaceId, str]:
    """Whose these are, in no particular order."""
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


def _news(used_at: Mapping[WorkspaceId, datetime]) -> Values:
    columns = column("id", Uuid()), column("used_at", DateTime(timezone=True))
    rows = sorted((UUID(workspace_id), moment) for workspace_id, moment in used_at.items())
    return values(*columns, name="news").data(rows)
