"""The audit trail: what was asked for, what was done, and by whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, func, insert, select
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import WorkspaceEvent
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import ErrorReason, Operation, Phase


class EventKind(StrEnum):
    """What happened; detail, operation and phase say more."""

    CREATED = "created"
    STATE_REQUESTED = "state_requested"
    METADATA_CHANGED = "metadata_changed"
    UNDELETED = "undeleted"
    RECOVERY_REQUESTED = "recovery_requested"
    RECOVERED = "recovered"
    RECOVERY_REFUSED = "recovery_refused"
    PHASE_CHANGED = "phase_changed"
    ERROR_FOUND = "error_found"
    OPERATION_CLAIMED = "operation_claimed"
    ATTEMPT_FAILED = "attempt_failed"
    OPERATION_COMPLETED = "operation_completed"
    OPERATION_FAILED = "operation_failed"
    OPERATION_RELEASED = "operation_released"


async def record_event(
    session: AsyncSession,
    workspace_id: WorkspaceId,
    kind: EventKind,
    now: datetime,
    *,
    actor: str,
    operation: Operation | None = None,
    phase: Phase | None = None,
    error_reason: ErrorReason | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Add a line in the transaction of what it tells about."""
    await session.execute(
        insert(WorkspaceEvent).values(
            workspace_id=UUID(workspace_id),
            at=now,
            kind=kind,
            actor=actor,
            operation=operation,
            phase=phase,
            error_reason=error_reason,
            detail=dict(detail or {}),
        )
    )


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
