"""Disk usage of workspaces: which ones to measure next, and the results."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Select, Text, and_, case, cast, func, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.disk import DiskUsage
from codehub.domain.states import Phase

CHANNEL = "ws_sse"


async def due_for_measurement(
    session: AsyncSession, now: datetime, interval: timedelta, limit: int
) -> list[WorkspaceId]:
    """Return the workspaces to measure next: once after each stop, and at this interval while they run."""
    rows = await session.scalars(select_due(now, interval, limit))
    return [WorkspaceId(str(each)) for each in rows]


async def store_measurement(
    session: AsyncSession, workspace_id: WorkspaceId, usage: DiskUsage, *, announce: bool
) -> None:
    """Store a measurement; notify followers of the workspace if the level changed."""
    changed = update(Workspace).where(Workspace.id == UUID(workspace_id))
    await session.execute(
        changed.values(
            disk_used_bytes=usage.used_bytes,
            disk_measured_at=usage.measured_at,
            disk_complete=usage.complete,
        )
    )
    if announce:
        payload = func.json_build_object("id", Workspace.id, "owner_user_id", Workspace.owner_user_id)
        notify = func.pg_notify(CHANNEL, cast(payload, Text))
        await session.execute(select(notify).where(Workspace.id == UUID(workspace_id)))


async def load_disk(session: AsyncSession, workspace_id: WorkspaceId) -> tuple[int | None, int | None] | None:
    """Return the last measurement and the workspace's own limit; None if the workspace is gone."""
    found = select(Workspace.disk_used_bytes, Workspace.disk_limit_bytes)
    row = (await session.execute(found.where(Workspace.id == UUID(workspace_id)))).one_or_none()
    return (row[0], row[1]) if row else None


async def set_disk_limit(
    session: AsyncSession, workspace_id: WorkspaceId, limit_bytes: int | None, now: datetime
) -> None:
    changed = update(Workspace).where(Workspace.id == UUID(workspace_id))
    await session.execute(changed.values(disk_limit_bytes=limit_bytes, updated_at=now))


async def count_over_limit(session: AsyncSession, installation: int | None) -> int:
    """Count the workspaces above their limit."""
    limit = func.nullif(func.coalesce(Workspace.disk_limit_bytes, installation), 0)
    over = select(func.count()).select_from(Workspace).where(text(predicates.NOT_DELETED))
    return (await session.scalars(over.where(Workspace.disk_used_bytes > limit))).one()


def select_due(now: datetime, interval: timedelta, limit: int) -> Select[UUID]:
    measured = Workspace.disk_measured_at
    never = measured.is_(None)
    stopped = and_(Workspace.phase == Phase.STANDBY, or_(never, measured < Workspace.phase_changed_at))
    running = and_(Workspace.phase == Phase.RUNNING, or_(never, measured <= now - interval))
    return (
        select(Workspace.id)
        .where(text(predicates.NOT_DELETED), or_(stopped, running))
        # Those that just stopped come first: somebody may be waiting for them.
        .order_by(case((stopped, 0), else_=1), measured.asc().nulls_first(), Workspace.id)
        .limit(limit)
    )
