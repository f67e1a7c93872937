"""A person's decisions about a broken or a deleted workspace: who writes them, and who says they are done."""

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
from codehub.domain.states import DesiredState


@dataclass(frozen=True)
class LockedSnapshot:
    """All that a decision looks at, of a row that nobody else changes until the transaction ends."""

    snapshot: Snapshot
    owner_user_id: UUID
    op_started_at: datetime | None
    last_recovery_at: datetime | None


@dataclass(frozen=True)
class RecoverRequest:
    """A choice that was made and not carried out yet; the moment names this request and no other.

    `archive_key` is the archive to go back to, None for the current one.
    """

    choice: RecoverChoice
    requested_at: datetime
    archive_key: str | None = None


async def lock_snapshot(session: AsyncSession, workspace_id: WorkspaceId) -> LockedSnapshot | None:
    """Lock the row, deleted or not; None if there is none."""
    snapshot = await load_snapshot(session, workspace_id, for_update=True)
    if snapshot is None:
        return None
    # GREATEST passes over NULL.
    latest = func.greatest(Workspace.recover_requested_at, Workspace.recover_handled_at)
    columns = select(Workspace.owner_user_id, Workspace.op_started_at, latest)
    row = (await session.execute(columns.where(Workspace.id == UUID(workspace_id)))).one()
    return LockedSnapshot(snapshot, row[0], row[1], row[2])


async def set_recover_request(
    session: AsyncSession, workspace_id: WorkspaceId, request: RecoverRequest, now: datetime
) -> None:
    """The service layer's; it replaces a request that has not been carried out."""
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


async def set_undeleted(
    session: AsyncSession, workspace_id: WorkspaceId, desired: DesiredState, now: datetime
) -> None:
    """The service layer's."""
    await session.execute(
        update(Workspace)
        .where(Workspace.id == UUID(workspace_id))
        .values(desired_state=desired, deleted_at=None, updated_at=now, **NOT_WAITING)
    )


# Built once: every look at a workspace asks.
_RECOVER_REQUEST = select(
    Workspace.recover_choice, Workspace.recover_requested_at, Workspace.recover_archive_key
).where(Workspace.id == bindparam("id", type_=Uuid()), text(predicates.RECOVERING))


async def load_recover_request(session: AsyncSession, workspace_id: WorkspaceId) -> RecoverRequest | None:
    """What is still to be carried out; None if nothing is."""
    row = (await session.execute(_RECOVER_REQUEST, {"id": UUID(workspace_id)})).one_or_none()
    if row is None or row[0] is None or row[1] is None:
        return None
    return RecoverRequest(RecoverChoice(row[0]), row[1], row[2])


async def mark_recovery_handled(
    session: AsyncSession, workspace_id: WorkspaceId, request: RecoverRequest
) -> None:
    """The workflow's: said in the transaction that stores what came of it."""
    await session.execute(
        update(Workspace)
        .where(Workspace.id == UUID(workspace_id))
        .values(recover_handled_at=request.requested_at)
    )
