"""What the rows say is there, to be compared with what the providers list."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import Workspace
from codehub.domain.conditions import Conditions, WorkspaceId, conditions_from_json
from codehub.domain.states import Operation

# Parked and deleted workspaces have neither container nor volume; those that do anyway are in the listing.
HAS_HOME = "deleted_at IS NULL AND phase IN ('RUNNING', 'STANDBY')"


@dataclass(frozen=True)
class Expected:
    """What was last observed of one workspace."""

    workspace_id: WorkspaceId
    owner_id: str
    conditions: Conditions
    busy: bool


async def load_expected(session: AsyncSession, ids: Collection[WorkspaceId]) -> list[Expected]:
    """Of these workspaces."""
    rows = await session.execute(_select().where(Workspace.id.in_([UUID(each) for each in ids])))
    return [_expected(row) for row in rows]


async def load_all_with_homes(session: AsyncSession) -> list[Expected]:
    """Of all that have a home on disk."""
    return [_expected(row) for row in await session.execute(_select().where(text(HAS_HOME)))]


def _select() -> Select[Any]:
    return select(Workspace.id, Workspace.owner_user_id, Workspace.conditions, Workspace.operation)


def _expected(row: Row[Any]) -> Expected:
    return Expected(
        workspace_id=WorkspaceId(str(row.id)),
        owner_id=str(row.owner_user_id),
        conditions=conditions_from_json(row.conditions),
        busy=row.operation != Operation.NONE,
    )
