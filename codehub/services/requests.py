"""What every request to change a workspace has in common: its context, its running slot, its audit event."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import load_account
from codehub.db.events import EventKind, record_event
from codehub.db.running_slots import count_running, list_running, lock_running_limits
from codehub.db.workspaces import LockedWorkspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.disk import effective_limit, start_refusal
from codehub.domain.limits import RunningLimits, exceeded_limit
from codehub.domain.states import ErrorReason, Operation, Phase
from codehub.services.errors import DiskLimitExceeded, LimitExceeded, OperationInProgress, OwnerDisabled


@dataclass(frozen=True)
class RequestContext:
    """Who makes a request, when, and the limits that apply to it."""

    actor: str
    limits: RunningLimits
    now: datetime
    user_id: UUID | None = None
    address: str | None = None


async def record_request(
    session: AsyncSession,
    context: RequestContext,
    workspace_id: WorkspaceId,
    kind: EventKind,
    phase: Phase,
    *,
    error_reason: ErrorReason | None = None,
    detail: Mapping[str, object],
) -> None:
    """Add the request to the audit trail, in the transaction that stores it."""
    await record_event(
        session,
        workspace_id,
        kind,
        context.now,
        actor=context.actor,
        phase=phase,
        error_reason=error_reason,
        detail=detail,
    )


async def reserve_slot(
    session: AsyncSession, owner_user_id: UUID, limits: RunningLimits, excluding: WorkspaceId | None = None
) -> None:
    """Raise LimitExceeded unless one more workspace may run.

    This locks the limits until the transaction ends, so that the count is still true when the caller commits.
    It must be the last lock that the transaction takes.
    """
    await lock_running_limits(session)
    own = await list_running(session, owner_user_id, excluding=excluding)
    total = await count_running(session, excluding=excluding)
    scope = exceeded_limit(len(own), total, limits)
    if scope is not None:
        raise LimitExceeded(scope, own)


async def require_enabled_owner(session: AsyncSession, owner_user_id: UUID, phase: Phase) -> None:
    """Raise OwnerDisabled if the owner is disabled. The sweep catches a race with disabling."""
    owner = await load_account(session, owner_user_id)
    if owner is not None and owner.disabled_at is not None:
        raise OwnerDisabled(phase)


def require_disk_space(workspace: LockedWorkspace, limits: RunningLimits) -> None:
    """Raise DiskLimitExceeded if the last measurement was above the limit."""
    limit = effective_limit(workspace.disk_limit_bytes, limits.disk_bytes)
    usage = workspace.disk
    refusal = start_refusal(usage, limit, workspace.phase, workspace.phase_changed_at)
    if refusal is not None and usage is not None and limit is not None:
        raise DiskLimitExceeded(usage.used_bytes, limit, refusal)


def require_idle(operation: Operation, since: datetime | None) -> None:
    """Raise OperationInProgress while an operation is claimed."""
    if operation is not Operation.NONE:
        raise OperationInProgress(operation, since)
