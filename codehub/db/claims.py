"""The operation that a workspace is under, and what it needs to know of the row."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation


@dataclass(frozen=True)
class Claim:
    """Operation and start name one claim and no other."""

    owner_id: str
    image_ref: str
    operation: Operation
    claimed_at: datetime | None


async def load_claim(session: AsyncSession, workspace_id: WorkspaceId) -> Claim | None:
    statement = select(
        Workspace.owner_user_id, Workspace.image_ref, Workspace.operation, Workspace.op_started_at
    ).where(Workspace.id == UUID(workspace_id))
    row = (await session.execute(statement)).one_or_none()
    return Claim(str(row[0]), row[1], Operation(row[2]), row[3]) if row else None
