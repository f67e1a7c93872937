"""Records the difference between two snapshots of a workspace in its audit trail."""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.events import EventKind, record_event
from codehub.db.snapshots import save_observation
from codehub.domain.conditions import Snapshot
from codehub.domain.states import Operation

ACTOR = "control-plane"


async def save_change(
    session: AsyncSession, before: Snapshot, after: Snapshot, now: datetime, *, released: bool = False
) -> None:
    """Store the snapshot and its event in one transaction."""
    await save_observation(session, after, now)
    kind = EventKind.OPERATION_RELEASED if released else event_kind(before, after)
    if kind is None:
        return
    await record_event(
        session,
        after.workspace_id,
        kind,
        now,
        actor=ACTOR,
        operation=before.operation,
        phase=after.phase,
        error_reason=after.error_reason,
        detail={"message": after.error_message} if after.error_message else None,
    )


def event_kind(before: Snapshot, after: Snapshot) -> EventKind | None:
    """Return the kind of the most important difference, or None if there is nothing to record."""
    failed = after.error_reason is not None and (
        after.error_reason is not before.error_reason or after.error_count > before.error_count
    )
    if before.operation is not Operation.NONE and after.operation is Operation.NONE:
        return EventKind.OPERATION_FAILED if failed else EventKind.OPERATION_COMPLETED
    if failed:
        return EventKind.ERROR_FOUND if after.operation is Operation.NONE else EventKind.ATTEMPT_FAILED
    return EventKind.PHASE_CHANGED if after.phase is not before.phase else None
