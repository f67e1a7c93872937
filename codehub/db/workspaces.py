"""What the service layer reads and writes: the row that a request is about, and the columns that it owns."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from uuid import UUID

from sqlalchemy import TextClause, case, func, insert, not_, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db import predicates
from codehub.db.m1_homes import only_in_m1
from codehub.db.models import Workspace
from codehub.db.snapshots import NOT_WAITING
from codehub.domain.conditions import WorkspaceId
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
    """A workspace that nobody else changes until the transaction ends."""

    owner_user_id: UUID
    phase: Phase
    operation: Operation
    op_started_at: datetime | None
    desired_state: DesiredState
    purge: bool
    metadata: Metadata
    version: int


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
    """Lock the row; None if there is none or it is deleted."""
    return await _lock(session, workspace_id, text(predicates.NOT_DELETED))


async def lock_visible_workspace(session: AsyncSession, workspace_id: WorkspaceId) -> LockedWorkspace | None:
    """Lock the row, also of one that is being deleted; None where `load_view` would show none."""
    return await _lock(session, workspace_id, text(predicates.VISIBLE_BY_ID))


async def has_workspaces(session: AsyncSession) -> bool:
    """Whether there ever was one; deleted ones count, those that only M1 had do not."""
    return await session.scalar(select(Workspace.id).where(not_(only_in_m1())).limit(1)) is not None


async def set_desired_state(
    session: AsyncSession, workspace_id: WorkspaceId, desired: DesiredState, now: datetime
) -> None:
    await session.execute(
        update(Workspace)
        .where(Workspace.id == UUID(workspace_id))
        .values(desired_state=desired, updated_at=now, **NOT_WAITING)
    )


async def set_metadata(
    session: AsyncSession, workspace_id: WorkspaceId, values: Mapping[str, str | int | None], now: datetime
) -> None:
    """Write some fields of `Metadata`."""
    await session.execute(
        update(Workspace).where(Workspace.id == UUID(workspace_id)).values(**values, updated_at=now)
    )


async def set_deleted(
    session: AsyncSession, workspace_id: WorkspaceId, *, purge: bool, now: datetime
) -> None:
    """Begin a deletion, or turn one into a purge; the time of the first request stays."""
    await session.execute(
        update(Workspace)
        .where(Workspace.id == UUID(workspace_id))
        .values(
            # `phase_at_deletion` of the domain: no sweep would look at a deletion that seems to be over.
            phase=case((Workspace.phase == Phase.DELETED, Phase.DELETING), else_=Workspace.phase),
            desired_state=DesiredState.DELETED,
            deleted_at=func.coalesce(Workspace.deleted_at, now),
            purge=purge,
            updated_at=now,
            # A deletion has all of its attempts, whatever failed before it.
            error_count=0,
            retry_at=None,
            **NOT_WAITING,
        )
    )


async def insert_workspace(session: AsyncSession, new: NewWorkspace, now: datetime) -> None:
    """Add the row; nothing of it has been observed yet."""
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
            Workspace.purge,
            Workspace.version,
            *(getattr(Workspace, name) for name in METADATA_FIELDS),
        )
        .where(Workspace.id == UUID(workspace_id), condition)
        .with_for_update(key_share=True)
    )
    row = (await session.execute(statement)).one_or_none()
    if row is None:
        return None
    return LockedWorkspace(
        owner_user_id=row.owner_user_id,
        phase=Phase(row.phase),
        operation=Operation(row.operation),
        op_started_at=row.op_started_at,
        desired_state=DesiredState(row.desired_state),
        purge=row.purge,
        metadata=Metadata(**{name: getattr(row, name) for name in METADATA_FIELDS}),
        version=row.version,
    )
