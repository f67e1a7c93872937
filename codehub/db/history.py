"""The audit trail as it is read: a workspace's operations and events, and what to count of all."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.events import EventKind
from codehub.db.models import WorkspaceEvent
from codehub.domain.conditions import WorkspaceId
from codehub.domain.history import Line, Mark, OperationRecord, OperationResult, fold
from codehub.domain.states import ErrorReason, Operation, Phase

__all__ = [
    "EventCount",
    "EventCounts",
    "EventView",
    "OperationRecord",
    "OperationResult",
    "count_events_since",
    "last_event_id",
    "list_events",
    "list_operations",
]

MARKS = {
    EventKind.OPERATION_CLAIMED: Mark.CLAIMED,
    EventKind.ATTEMPT_FAILED: Mark.ATTEMPT_FAILED,
    EventKind.OPERATION_COMPLETED: Mark.COMPLETED,
    EventKind.OPERATION_FAILED: Mark.FAILED,
}
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


async def list_operations(
    session: AsyncSession, workspace_id: WorkspaceId, *, before: int | None, limit: int
) -> list[OperationRecord]:
    """Newest first; `before` is the `event_id` of the record that the page before ended with."""
    rows = await session.execute(select_operation_lines(workspace_id, before, limit))
    return fold((_line(row) for row in rows), superseded=before is not None)


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


def select_operation_lines(
    workspace_id: WorkspaceId, before: int | None, limit: int
) -> Select[int, datetime, str, str | None, str | None, dict[str, Any]]:
    """All lines from the page's oldest claim on: how long the history is does not matter."""
    of_workspace = (WorkspaceEvent.workspace_id == UUID(workspace_id), WorkspaceEvent.id < _end(before))
    claims = (
        select(WorkspaceEvent.id)
        .where(*of_workspace, WorkspaceEvent.kind == EventKind.OPERATION_CLAIMED)
        .order_by(WorkspaceEvent.id.desc())
        .limit(limit)
        .subquery("claims")
    )
    oldest = select(func.min(claims.c.id)).scalar_subquery()
    return (
        select(
            WorkspaceEvent.id,
            WorkspaceEvent.at,
            WorkspaceEvent.kind,
            WorkspaceEvent.operation,
            WorkspaceEvent.error_reason,
            WorkspaceEvent.detail,
        )
        .where(*of_workspace, WorkspaceEvent.id >= oldest, WorkspaceEvent.kind.in_(MARKS))
        .order_by(WorkspaceEvent.id)
    )


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


def _line(row: Row[*tuple[Any, ...]]) -> Line:
    return Line(
        event_id=row.id,
        at=row.at,
        mark=MARKS[EventKind(row.kind)],
        operation=Operation(row.operation),
        error_reason=_reason(row.error_reason),
        message=row.detail.get("message"),
    )


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
