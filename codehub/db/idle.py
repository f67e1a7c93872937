"""Which workspaces nobody uses: the rule of `codehub.domain.limits.idle_target`, asked of all rows."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, DateTime, Select, func, literal, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from codehub.db import predicates
from codehub.db.models import Workspace
from codehub.db.workspaces import workspace_ids
from codehub.domain.conditions import WorkspaceId


async def due_for_standby(
    session: AsyncSession, now: datetime, default_ttl: timedelta, limit: int
) -> list[WorkspaceId]:
    """Running, with nothing under way, and unused for longer than its standby TTL."""
    return workspace_ids(await session.scalars(select_due_for_standby(now, default_ttl, limit)))


async def due_for_archive(
    session: AsyncSession, now: datetime, default_ttl: timedelta, limit: int
) -> list[WorkspaceId]:
    """In standby, with nothing under way, for longer than its archive TTL."""
    return workspace_ids(await session.scalars(select_due_for_archive(now, default_ttl, limit)))


def select_due_for_standby(now: datetime, default_ttl: timedelta, limit: int) -> Select[UUID]:
    # GREATEST passes over NULL: a workspace that was never used counts from its start.
    used_at = func.greatest(Workspace.last_access_at, Workspace.phase_changed_at)
    due_at = used_at + _ttl(Workspace.standby_ttl_seconds, default_ttl)
    return _oldest_due(predicates.IDLE_RUNNING, due_at, now, limit)


def select_due_for_archive(now: datetime, default_ttl: timedelta, limit: int) -> Select[UUID]:
    due_at = Workspace.phase_changed_at + _ttl(Workspace.archive_ttl_seconds, default_ttl)
    return _oldest_due(predicates.IDLE_STANDBY, due_at, now, limit)


def _ttl(seconds: InstrumentedAttribute[int | None], default: timedelta) -> ColumnElement[timedelta]:
    return func.coalesce(seconds * literal(timedelta(seconds=1)), default)


def _oldest_due(candidates: str, due_at: ColumnElement[datetime], now: datetime, limit: int) -> Select[UUID]:
    return (
        select(Workspace.id)
        .where(text(candidates), due_at < literal(now, DateTime(timezone=True)))
        .order_by(Workspace.phase_changed_at)
        .limit(limit)
    )
