"""The audit trail as it is read: a workspace's events, and what to count of all."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import WorkspaceEvent
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import ErrorReason, Operation, Phase

LAST_BIGINT = 2**63 - 1


@dataclass(frozen=True)
class EventView:
    """One line. `kind` is text: the trail outlives releases, so it may have words that this one lacks."""

    id: int
    at: datetime
    kind: str
    actor: str
    operation: Operation | None
    phase: Phase | None
    error_reason: ErrorReason | None
    detail: dict[str, Any]


@dataclass(frozen=True)
class EventCount:
    """How many lines say the same."""

    kind: str
    operation: Operation | None
    actor: str
    error_reason: ErrorReason | None
    count: int


@dataclass(frozen=True)
class EventCounts:
    """New lines, and the id to go on from."""

    counts: tuple[EventCount, ...]
    last_id: int


async def list_events(
    session: AsyncSession, workspace_id: WorkspaceId, *, before: int | None, limit: int
) -> list[EventView]:
    """Newest first; `before` is the `id` of the line that the page before ended with."""
    return [_event(row) for row in await session.execute(select_events(workspace_id, before, limit))]


async def last_event_id(session: AsyncSession) -> int:
    """Where counting begins: what happened earlier is not counted again by each new process."""
    return (await session.scalars(select(func.coalesce(func.max(WorkspaceEvent.id), 0)))).one()


async def count_events_since(session: AsyncSession, after_id: int, until: datetime) -> EventCounts:
    """Count the lines after `after_id`, up to the first one that is newer than `until`.

    A line may be committed after one with a higher id, so `until` should be a few seconds ago. Stopping at
    the first newer line, instead of passing over it, keeps it for the next time.
    """
    rows = (await session.execute(select_counts(after_id, until))).all()
    counts = tuple(
        EventCount(row.kind, _operation(row.operation), row.actor, _reason(row.error_reason), row.lines)
        for row in rows
    )
    return EventCounts(counts, max((row.last_id for row in rows), default=after_id))


def select_events(workspace_id: WorkspaceId, before: int | None, limit: int) -> Select[*tuple[Any, ...]]:
    return (
        select(*WorkspaceEvent.__table__.columns)
        .where(WorkspaceEvent.workspace_id == UUID(workspace_id), WorkspaceEvent.id < _end(before))
        .order_by(WorkspaceEvent.id.desc())
        .limit(limit)
    )


def select_counts(after_id: int, until: datetime) -> Select[*tuple[Any, ...]]:
    new = WorkspaceEvent.id > after_id
    first_too_new = (
        select(func.coalesce(func.min(WorkspaceEvent.id), LAST_BIGINT))
        .where(new, WorkspaceEvent.at > until)
        .scalar_subquery()
    )
    same = (WorkspaceEvent.kind, WorkspaceEvent.operation, WorkspaceEvent.actor, WorkspaceEvent.error_reason)
    return (
        select(*same, func.count().label("lines"), func.max(WorkspaceEvent.id).label("last_id"))
        .where(new, WorkspaceEvent.id < first_too_new)
        .group_by(*same)
    )


def _end(before: int | None) -> int:
    return LAST_BIGINT if before is None else before


def _event(row: Row[*tuple[Any, ...]]) -> EventView:
    return EventView(
        id=row.id,
        at=row.at,
        kind=row.kind,
        actor=row.actor,
        operation=_operation(row.operation),
        phase=Phase(row.phase) if row.phase else None,
        error_reason=_reason(row.error_reason),
        detail=row.detail,
    )


def _operation(text: str | None) -> Operation | None:
    return Operation(text) if text else None


def _reason(text: str | None) -> ErrorReason | None:
    return ErrorReason(text) if text else None
