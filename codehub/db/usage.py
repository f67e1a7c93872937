"""When workspaces were last used, and whose they are."""

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

from sqlalchemy import DateTime, Uuid, column, func, select, update, values
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId


async def store_last_access(session: AsyncSession, used_at: Mapping[WorkspaceId, datetime]) -> None:
    """Store the latest use of each; an older one that arrives late changes nothing."""
    if not used_at:
        return
    news = values(column("id", Uuid()), column("used_at", DateTime(timezone=True)), name="news").data(
        sorted((UUID(workspace_id), moment) for workspace_id, moment in used_at.items())
    )
    await session.execute(
        update(Workspace)
        .where(Workspace.id == news.c.id)
        .values(last_access_at=func.greatest(Workspace.last_access_at, news.c.used_at))
        .execution_options(synchronize_session=False)
    )


async def load_owner_ids(session: AsyncSession, ids: Collection[WorkspaceId]) -> dict[WorkspaceId, str]:
    """Whose these are, in no particular order."""
    rows = await session.execute(
        select(Workspace.id, Workspace.owner_user_id).where(Workspace.id.in_([UUID(each) for each in ids]))
    )
    return {WorkspaceId(str(row[0])): str(row[1]) for row in rows}
