"""Which workspaces nobody uses: the rule of `codehub.domain.limits.idle_target`, asked of all rows."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, DateTime, Select, func, literal, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from codehub.db import predicates
from codehub.db.models import Workspace
from codehub.db.snapshots import workspace_ids
from codehub.domain.conditions import WorkspaceId


async def due_for_standby(
    session: AsyncSession, now: datetime, default_ttl: timedelta, limit: int
) -> list[WorkspaceId]:
    """Running, with nothing under way, and unused for longer than its standby TTL."""
    return workspace_ids(await session.scalars(select_due_for_standby(now, default_ttl, limit)))


async def due_for_archive(
    session: AsyncSession, now: datetime, default_ttl: timedelta, limit: int
) -> list[WorkspaceId]:
    """In standby, with nothing under way, for longer than its archive TTL; owners take turns."""
    return workspace_ids(await session.scalars(select_due_for_archive(now, default_ttl, limit)))


def select_due_for_standby(now: datetime, default_ttl: timedelta, limit: int) -> Select[UUID]:
    # GREATEST passes over NULL: a workspace that was never used counts from its start.
    used_at = func.greatest(Workspace.last_access_at, Workspace.phase_changed_at)
    due_at = used_at + _ttl(Workspace.standby_ttl_seconds, default_ttl)
    due = _due(predicates.IDLE_RUNNING, due_at, now).subquery()
    return select(due.c.id).order_by(due.c.phase_changed_at).limit(limit)


def select_due_for_archive(now: datetime, default_ttl: timedelta, limit: int) -> Select[UUID]:
    due_at = Workspace.phase_changed_at + _ttl(Workspace.archive_ttl_seconds, default_ttl)
    due = _due(predicates.IDLE_STANDBY, due_at, now).subquery()
    turn = func.row_number().over(partition_by=due.c.owner_user_id, order_by=due.c.phase_changed_at)
    return select(due.c.id).order_by(turn, due.c.phase_changed_at).limit(limit)


def _ttl(seconds: InstrumentedAttribute[int | None], default: timedelta) -> ColumnElement[timedelta]:
    return func.coalesce(seconds * literal(timedelta(seconds=1)), default)


def _due(candidates: str, due_at: ColumnElement[datetime], now: datetime) -> Select[UUID, UUID, datetime]:
    return select(Workspace.id, Workspace.owner_user_id, Workspace.phase_changed_at).where(
        text(candidates), due_at < literal(now, DateTime(timezone=True))
    )
