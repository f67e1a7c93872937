"""The places for running workspaces, given out one transaction at a time."""

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.running_slots import count_running, lock_running_limits, running_of
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits, exceeded_limit
from codehub.services.errors import LimitExceeded


async def take_place(
    session: AsyncSession, owner_user_id: UUID, limits: RunningLimits, besides: WorkspaceId | None = None
) -> None:
    """Hold the limits until the transaction ends, so that what was counted stays true until it is written."""
    await lock_running_limits(session)
    own = await running_of(session, owner_user_id, besides=besides)
    total = await count_running(session, besides=besides)
    scope = exceeded_limit(len(own), total, limits)
    if scope is not None:
        raise LimitExceeded(scope, own)
