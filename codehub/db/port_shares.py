"""The shared ports of a workspace, in its row."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.port_shares import PortShares, parse, serialize


async def load_shares(session: AsyncSession, workspace_id: WorkspaceId) -> PortShares:
    """Return the shares of a workspace whose row is locked."""
    statement = select(Workspace.port_shares).where(Workspace.id == UUID(workspace_id))
    return parse((await session.scalars(statement)).one())


async def save_shares(
    session: AsyncSession, workspace_id: WorkspaceId, shares: PortShares, now: datetime
) -> None:
    await session.execute(
        update(Workspace)
        .where(Workspace.id == UUID(workspace_id))
        .values(port_shares=serialize(shares), updated_at=now)
    )
