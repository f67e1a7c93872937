"""Rows of workspaces as the service layer reads and writes them: only the columns that it owns."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from uuid import UUID

from sqlalchemy import TextClause, Update, func, insert, not_, null, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.m1_homes import only_in_m1
from codehub.db.models import Workspace
from codehub.db.snapshots import NOT_WAITING, phase_changed_at
from codehub.domain.conditions import Snapshot, WorkspaceId
from codehub.domain.disk import DiskUsage
from codehub.domain.states import DesiredState, Operation, Phase


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """The columns that a person may write at any time. TTLs of None mean the configured defaults."""

    name: str
    description: str | None = None
    memo: str | None = None
    standby_ttl_seconds: int | None = None
    archive_ttl_seconds: int | None = None


METADATA_FIELDS = tuple(field.name for field in fields(Metadata))


@dataclass(frozen=True)
class LockedWorkspace:
    """A workspace whose row is locked until the transaction ends."""

    workspace_id: WorkspaceId
    owner_user_id: UUID
    phase: Phase
    operation: Operation
    op_started_at: datetime | None
    desired_state: DesiredState
    metadata: Metadata
    version: int
    phase_changed_at: datetime
    disk: DiskUsage | None
    disk_limit_bytes: int | None


@dataclass(frozen=True)
class NewWorkspace:
    """A workspace to insert."""

    workspace_id: WorkspaceId
    owner_user_id: UUID
    metadata: Metadata
    image_ref: str
    instance_backend: str
    storage_backend: str
    home_store_key: str
    desired_state: DesiredState


async def lock_workspace(session: AsyncSession, workspace_id: WorkspaceId) -> LockedWorkspace | None:
    """Lock the row; return None if there is none or its deletion was requested."""
    return await _lock(session, workspace_id, text(predicates.NOT_DELETED))


async def lock_visible_workspace(session: AsyncSession, workspace_id: WorkspaceId) -> LockedWorkspace | None:
    """Lock the row; return None if there is none or it is DELETED."""
    return await _lock(session, workspace_id, text(predicates.VISIBLE))


async def has_workspaces(session: AsyncSession) -> bool:
    """Return whether there ever was a workspace; deleted ones count, those that only M1 had do not."""
    return await session.scalar(select(Workspace.id).where(not_(only_in_m1())).limit(1)) is not None


async def set_desired_state(
    session: AsyncSession, workspace_id: WorkspaceId, desired: DesiredState, now: datetime
) -> None:
    await session.execute(_update(workspace_id).values(desired_state=desired, updated_at=now, **NOT_WAITING))


async def set_metadata(
    session: AsyncSession, workspace_id: WorkspaceId, values: Mapping[str, str | int | None], now: datetime
) -> None:
    """Write some fields of `Metadata`."""
    await session.execute(_update(workspace_id).values(**values, updated_at=now))


async def save_deletion(session: AsyncSession, snapshot: Snapshot, now: datetime) -> None:
    """Store a deletion that was requested or undone; the time of the first request stays."""
    await session.execute(
        _update(snapshot.workspace_id).values(
            phase=snapshot.phase,
            phase_changed_at=phase_changed_at(snapshot.phase, now),
            desired_state=snapshot.desired_state,
            deleted_at=func.coalesce(Workspace.deleted_at, now) if snapshot.deleted else null(),
            purge=snapshot.purge,
            updated_at=now,
            error_count=snapshot.error_count,
            retry_at=snapshot.retry_at,
            **NOT_WAITING,
        )
    )


async def insert_workspace(session: AsyncSession, new: NewWorkspace, now: datetime) -> None:
    """Insert the row of a workspace that has not been observed yet."""
    await session.execute(
        insert(Workspace).values(
            id=UUID(new.workspace_id),
            owner_user_id=new.owner_user_id,
            **asdict(new.metadata),
            image_ref=new.image_ref,
            instance_backend=new.instance_backend,
            storage_backend=new.storage_backend,
            home_store_key=new.home_store_key,
            desired_state=new.desired_state,
            phase=Phase.PENDING,
            phase_changed_at=now,
            created_at=now,
            updated_at=now,
        )
    )


async def _lock(
    session: AsyncSession, workspace_id: WorkspaceId, condition: TextClause
) -> LockedWorkspace | None:
    statement = (
        select(
            Workspace.owner_user_id,
            Workspace.phase,
            Workspace.operation,
            Workspace.op_started_at,
            Workspace.desired_state,
            Workspace.version,
            Workspace.phase_changed_at,
            Workspace.disk_used_bytes,
            Workspace.disk_measured_at,
            Workspace.disk_complete,
            Workspace.disk_limit_bytes,
            *(getattr(Workspace, name) for name in METADATA_FIELDS),
        )
        .where(Workspace.id == UUID(workspace_id), condition)
        .with_for_update(key_share=True)
    )
    row = (await session.execute(statement)).one_or_none()
    if row is None:
        return None
    return LockedWorkspace(
        workspace_id=workspace_id,
        owner_user_id=row.owner_user_id,
        phase=Phase(row.phase),
        operation=Operation(row.operation),
        op_started_at=row.op_started_at,
        desired_state=DesiredState(row.desired_state),
        metadata=Metadata(**{name: getattr(row, name) for name in METADATA_FIELDS}),
        version=row.version,
        phase_changed_at=row.phase_changed_at,
        disk=disk_usage(row.disk_used_bytes, row.disk_measured_at, row.disk_complete),
        disk_limit_bytes=row.disk_limit_bytes,
    )


def disk_usage(
    used_bytes: int | None, measured_at: datetime | None, complete: bool | None
) -> DiskUsage | None:
    """Return the last measurement from its columns; None if there was none."""
    if used_bytes is None or measured_at is None:
        return None
    return DiskUsage(used_bytes, measured_at, bool(complete))


def _update(workspace_id: WorkspaceId) -> Update:
    return update(Workspace).where(Workspace.id == UUID(workspace_id))
