"""The audit trail: what was requested, what was done, and by whom."""

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

LAST_BIGINT = 2**63 - 1


class EventKind(StrEnum):
    """What happened."""

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


@dataclass(frozen=True)
class EventView:
    """One event; `kind` is a string, because other releases may have kinds that this one lacks."""

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
    """How many events are alike."""

    kind: str
    operation: Operation | None
    actor: str
    error_reason: ErrorReason | None
    count: int


@dataclass(frozen=True)
class EventCounts:
    """The counts of new events, and the id to continue from."""

    counts: tuple[EventCount, ...]
    last_id: int


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
    """Add an event, in the transaction that makes the change."""
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


async def list_events(
    session: AsyncSession, workspace_id: WorkspaceId, *, before: int | None, limit: int
) -> list[EventView]:
    """Return one page, newest first; `before` is the last `id` of the previous page."""
    return [_event(row) for row in await session.execute(select_events(workspace_id, before, limit))]


async def last_event_id(session: AsyncSession) -> int:
    """Return where a new process starts to count: earlier events are not counted again."""
    return (await session.scalars(select(func.coalesce(func.max(WorkspaceEvent.id), 0)))).one()


async def count_events_since(session: AsyncSession, after_id: int, until: datetime) -> EventCounts:
    """Count the events after `after_id`, up to the first one that is newer than `until`.

    An event may be committed after one with a higher id, so `until` should be a few seconds ago. Stopping at
    the first newer event, instead of skipping it, leaves it for the next call.
    """
    rows = (await session.execute(select_counts(after_id, until))).all()
    counts = tuple(
        EventCount(row.kind, _operation(row.operation), row.actor, _reason(row.error_reason), row.count_)
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
        select(*same, func.count().label("count_"), func.max(WorkspaceEvent.id).label("last_id"))
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
