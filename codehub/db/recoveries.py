"""Recover requests: the service layer writes them, the workflow marks them as handled."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Uuid, bindparam, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.models import Workspace
from codehub.db.snapshots import NOT_WAITING, load_snapshot
from codehub.domain.conditions import Snapshot, WorkspaceId
from codehub.domain.recovery import RecoverChoice


@dataclass(frozen=True)
class LockedSnapshot:
    """What a recovery is decided on; the row is locked until the transaction ends."""

    snapshot: Snapshot
    owner_user_id: UUID
    last_recovery_at: datetime | None


@dataclass(frozen=True)
class RecoverRequest:
    """A choice that has not been carried out yet; `requested_at` identifies the request.

    `archive_key` is the archive to restore, None for the current one.
    """

    choice: RecoverChoice
    requested_at: datetime
    archive_key: str | None = None


async def lock_snapshot(session: AsyncSession, workspace_id: WorkspaceId) -> LockedSnapshot | None:
    """Lock the row, deleted or not; return None if there is none."""
    snapshot = await load_snapshot(session, workspace_id, for_update=True)
    if snapshot is None:
        return None
    # GREATEST ignores NULL.
    latest = func.greatest(Workspace.recover_requested_at, Workspace.recover_handled_at)
    columns = select(Workspace.owner_user_id, latest)
    row = (await session.execute(columns.where(Workspace.id == UUID(workspace_id)))).one()
    return LockedSnapshot(snapshot, row[0], row[1])


async def set_recover_request(
    session: AsyncSession, workspace_id: WorkspaceId, request: RecoverRequest, now: datetime
) -> None:
    """Store the request; it replaces one that has not been carried out. Only the service layer calls this."""
    await session.execute(
        update(Workspace)
        .where(Workspace.id == UUID(workspace_id))
        .values(
            recover_choice=request.choice,
            recover_archive_key=request.archive_key,
            recover_requested_at=request.requested_at,
            updated_at=now,
            **NOT_WAITING,
        )
    )


# Built once: every observation runs it.
_RECOVER_REQUEST = select(
    Workspace.recover_choice, Workspace.recover_requested_at, Workspace.recover_archive_key
).where(Workspace.id == bindparam("id", type_=Uuid()), text(predicates.RECOVERING))


async def load_recover_request(session: AsyncSession, workspace_id: WorkspaceId) -> RecoverRequest | None:
    """Return the request that is still to be carried out, or None."""
    row = (await session.execute(_RECOVER_REQUEST, {"id": UUID(workspace_id)})).one_or_none()
    if row is None or row[0] is None or row[1] is None:
        return None
    return RecoverRequest(RecoverChoice(row[0]), row[1], row[2])


async def mark_recovery_handled(
    session: AsyncSession, workspace_id: WorkspaceId, request: RecoverRequest
) -> None:
    """Mark the request as handled, with its outcome in the same transaction. Only the workflow calls this."""
    await session.execute(
        update(Workspace)
        .where(Workspace.id == UUID(workspace_id))
        .values(recover_handled_at=request.requested_at)
    )
