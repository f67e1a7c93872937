"""The audit trail: what was asked for, what was done, and by whom."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import insert
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
