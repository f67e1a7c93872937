"""Which backends have the homes of the workspaces in this database."""

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.models import Workspace


async def backends_in_use(session: AsyncSession) -> set[str]:
    """Those of all workspaces but the deleted ones, which have no home any more."""
    rows = await session.scalars(
        select(Workspace.instance_backend).where(text(predicates.VISIBLE_BY_ID)).distinct()
    )
    return set(rows)
