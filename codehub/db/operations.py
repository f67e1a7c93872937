"""The operations of a workspace, read from its audit trail."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.events import LAST_BIGINT, EventKind
from codehub.db.models import WorkspaceEvent
from codehub.domain.conditions import WorkspaceId
from codehub.domain.history import OperationEvent, OperationRecord, Transition, operations_from_events
from codehub.domain.states import ErrorReason, Operation

EventSelect = Select[int, datetime, str, str | None, str | None, dict[str, Any]]
TRANSITIONS = {
    EventKind.OPERATION_CLAIMED: Transition.CLAIMED,
    EventKind.ATTEMPT_FAILED: Transition.ATTEMPT_FAILED,
    EventKind.OPERATION_COMPLETED: Transition.COMPLETED,
    EventKind.OPERATION_FAILED: Transition.FAILED,
    EventKind.OPERATION_RELEASED: Transition.RELEASED,
}


async def list_operations(
    session: AsyncSession, workspace_id: WorkspaceId, *, before: int | None, limit: int
) -> list[OperationRecord]:
    """Return one page, newest first; `before` is the last `event_id` of the previous page."""
    rows = await session.execute(select_operation_events(workspace_id, before, limit))
    return operations_from_events((_event(row) for row in rows), superseded=before is not None)


async def load_operation(
    session: AsyncSession, workspace_id: WorkspaceId, event_id: int
) -> OperationRecord | None:
    """Return the operation whose claim has this event id, or None."""
    events = [_event(row) for row in await session.execute(select_events_of(workspace_id, event_id))]
    if not events or (events[0].event_id, events[0].transition) != (event_id, Transition.CLAIMED):
        return None
    # The oldest: if another operation was claimed since, its claim is among the events.
    return operations_from_events(events, superseded=False)[-1]


def select_operation_events(workspace_id: WorkspaceId, before: int | None, limit: int) -> EventSelect:
    """Select all events since the oldest claim on the page; the cost does not grow with the history."""
    end = LAST_BIGINT if before is None else before
    of_workspace = (WorkspaceEvent.workspace_id == UUID(workspace_id), WorkspaceEvent.id < end)
    claims = (
        select(WorkspaceEvent.id)
        .where(*of_workspace, WorkspaceEvent.kind == EventKind.OPERATION_CLAIMED)
        .order_by(WorkspaceEvent.id.desc())
        .limit(limit)
        .subquery("claims")
    )
    oldest = select(func.min(claims.c.id)).scalar_subquery()
    return _select().where(*of_workspace, WorkspaceEvent.id >= oldest)


def select_events_of(workspace_id: WorkspaceId, event_id: int) -> EventSelect:
    """Select the events from this claim to the next one, inclusive."""
    of_workspace = WorkspaceEvent.workspace_id == UUID(workspace_id)
    is_claim = WorkspaceEvent.kind == EventKind.OPERATION_CLAIMED
    following = (
        select(WorkspaceEvent.id)
        .where(of_workspace, WorkspaceEvent.id > event_id, is_claim)
        .order_by(WorkspaceEvent.id)
        .limit(1)
        .scalar_subquery()
    )
    last = func.coalesce(following, LAST_BIGINT)
    return _select().where(of_workspace, WorkspaceEvent.id >= event_id, WorkspaceEvent.id <= last)


def _select() -> EventSelect:
    return (
        select(
            WorkspaceEvent.id,
            WorkspaceEvent.at,
            WorkspaceEvent.kind,
            WorkspaceEvent.operation,
            WorkspaceEvent.error_reason,
            WorkspaceEvent.detail,
        )
        .where(WorkspaceEvent.kind.in_(TRANSITIONS))
        .order_by(WorkspaceEvent.id)
    )


def _event(row: Row[*tuple[Any, ...]]) -> OperationEvent:
    return OperationEvent(
        event_id=row.id,
        at=row.at,
        transition=TRANSITIONS[EventKind(row.kind)],
        operation=Operation(row.operation),
        error_reason=ErrorReason(row.error_reason) if row.error_reason else None,
        message=row.detail.get("message"),
    )
