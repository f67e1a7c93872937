"""The numbers that determine the ports of workspaces in port mode; never reused."""

from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId

SEQUENCE = "workspace_origin_numbers"


async def ensure_number(session: AsyncSession, workspace_id: WorkspaceId) -> int | None:
    """Return the workspace's number, and assign one if it has none; None if the workspace is gone."""
    this_one = Workspace.id == UUID(workspace_id)
    # Lock first, so that concurrent requests use up only one number.
    locked = select(Workspace.origin_number).where(this_one).with_for_update(key_share=True)
    row = (await session.execute(locked)).one_or_none()
    if row is None or row.origin_number is not None:
        return row.origin_number if row else None
    new = update(Workspace).where(this_one).values(origin_number=func.nextval(SEQUENCE))
    return (await session.scalars(new.returning(Workspace.origin_number))).one()


async def find_workspace_by_number(session: AsyncSession, number: int) -> WorkspaceId | None:
    found = await session.scalars(select(Workspace.id).where(Workspace.origin_number == number))
    workspace_id = found.one_or_none()
    return None if workspace_id is None else WorkspaceId(str(workspace_id))
