"""Rows of workspaces as their workflow reads and writes them: only the columns that it owns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Update, Uuid, bindparam, case, func, null, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import Workspace
from codehub.domain.conditions import (
    Resource,
    Snapshot,
    WorkspaceId,
    conditions_from_json,
    conditions_to_json,
)
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase

RESTORE_MARKER = "restore_marker"
# A new request may need other providers than the last one did, so its workspace is due at once.
NOT_WAITING: Mapping[str, Any] = {"waiting_for": None, "waiting_since": None}

_SNAPSHOT_COLUMNS = (
    Workspace.id,
    Workspace.desired_state,
    Workspace.phase,
    Workspace.operation,
    Workspace.conditions,
    Workspace.archive_key,
    Workspace.archive_op_id,
    Workspace.home_ctx,
    Workspace.error_reason,
    Workspace.error_message,
    Workspace.error_count,
    Workspace.deleted_at,
    Workspace.purge,
    Workspace.op_started_at,
    Workspace.waiting_for,
    Workspace.waiting_since,
    Workspace.retry_at,
)
# Built once: building is most of the cost of a statement, and every step of an operation runs one.
_SNAPSHOT = select(*_SNAPSHOT_COLUMNS).where(Workspace.id == bindparam("id", type_=Uuid()))
_LOCKED_SNAPSHOT = _SNAPSHOT.with_for_update(key_share=True)


@dataclass(frozen=True)
class Claim:
    """The operation that a workspace is claimed for; operation and start identify the claim."""

    owner_id: str
    image_ref: str
    operation: Operation
    claimed_at: datetime | None


async def load_snapshot(
    session: AsyncSession, workspace_id: WorkspaceId, *, for_update: bool = False
) -> Snapshot | None:
    """Return what decisions are based on; `for_update` locks the row until the transaction ends."""
    statement = _LOCKED_SNAPSHOT if for_update else _SNAPSHOT
    row = (await session.execute(statement, {"id": UUID(workspace_id)})).one_or_none()
    return _snapshot(row) if row else None


async def save_observation(session: AsyncSession, snapshot: Snapshot, now: datetime) -> None:
    """Store every column that the workflow owns, and no other."""
    statement = _update(snapshot.workspace_id).values(
        conditions=conditions_to_json(snapshot.conditions),
        observed_at=now,
        phase=snapshot.phase,
        phase_changed_at=phase_changed_at(snapshot.phase, now),
        operation=snapshot.operation,
        op_started_at=_op_started_at(snapshot.operation, now),
        archive_op_id=_uuid(snapshot.archive_op_id),
        archive_key=snapshot.archive_key,
        home_ctx=_home_ctx(snapshot),
        error_reason=snapshot.error_reason,
        error_message=snapshot.error_message,
        error_count=snapshot.error_count,
        waiting_for=list(snapshot.waiting_for) or None,
        waiting_since=snapshot.waiting_since,
        retry_at=snapshot.retry_at,
    )
    await session.execute(statement)


async def claim_operation(session: AsyncSession, claimed: Snapshot, now: datetime) -> bool:
    """Store the claim if there is none (compare-and-set); return False if there is one already."""
    statement = (
        _update(claimed.workspace_id)
        .where(Workspace.operation == Operation.NONE)
        .values(
            operation=claimed.operation,
            op_started_at=now,
            archive_op_id=_uuid(claimed.archive_op_id),
            home_ctx=_home_ctx(claimed),
        )
    )
    return await session.scalar(statement.returning(Workspace.id)) is not None


async def load_claim(session: AsyncSession, workspace_id: WorkspaceId) -> Claim | None:
    statement = select(
        Workspace.owner_user_id, Workspace.image_ref, Workspace.operation, Workspace.op_started_at
    ).where(Workspace.id == UUID(workspace_id))
    row = (await session.execute(statement)).one_or_none()
    return Claim(str(row[0]), row[1], Operation(row[2]), row[3]) if row else None


def workspace_ids(ids: Iterable[UUID]) -> list[WorkspaceId]:
    """Convert database ids to workspace ids."""
    return [WorkspaceId(str(each)) for each in ids]


def _update(workspace_id: WorkspaceId) -> Update:
    statement = update(Workspace).where(Workspace.id == UUID(workspace_id))
    return statement.execution_options(synchronize_session=False)


def phase_changed_at(phase: Phase, now: datetime) -> ColumnElement[datetime]:
    """Return `now` if the phase changes, else the stored time."""
    return case((Workspace.phase == phase, Workspace.phase_changed_at), else_=now)


def _op_started_at(operation: Operation, now: datetime) -> ColumnElement[Any]:
    if operation is Operation.NONE:
        return null()
    return case((Workspace.operation == operation, Workspace.op_started_at), else_=now)


def _home_ctx(snapshot: Snapshot) -> ColumnElement[dict[str, Any]]:
    """Set only this key: a storage backend may keep others in the column."""
    marker = func.jsonb_build_object(RESTORE_MARKER, snapshot.restore_marker, type_=JSONB)
    return Workspace.home_ctx.concat(marker)


def _uuid(text: str | None) -> UUID | None:
    return UUID(text) if text else None


def _snapshot(row: Row[Any]) -> Snapshot:
    return Snapshot(
        workspace_id=WorkspaceId(str(row.id)),
        desired_state=DesiredState(row.desired_state),
        phase=Phase(row.phase),
        operation=Operation(row.operation),
        conditions=conditions_from_json(row.conditions),
        archive_key=row.archive_key,
        archive_op_id=str(row.archive_op_id) if row.archive_op_id else None,
        restore_marker=row.home_ctx.get(RESTORE_MARKER),
        error_reason=ErrorReason(row.error_reason) if row.error_reason else None,
        error_message=row.error_message,
        error_count=row.error_count,
        deleted=row.deleted_at is not None,
        purge=row.purge,
        claimed_at=row.op_started_at,
        waiting_for=tuple(Resource(each) for each in row.waiting_for or ()),
        waiting_since=row.waiting_since,
        retry_at=row.retry_at,
    )
