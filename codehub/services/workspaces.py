"""What may be asked of a workspace: one short transaction each, and waking its workflow comes after."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeAlias
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.events import EventKind, record_event
from codehub.db.idempotency import FirstRequest, delete_expired_keys, store_key
from codehub.db.running_slots import count_running, list_running, lock_running_limits
from codehub.db.session import Database
from codehub.db.workspaces import (
    LockedWorkspace,
    Metadata,
    NewWorkspace,
    insert_workspace,
    lock_visible_workspace,
    lock_workspace,
    set_deleted,
    set_desired_state,
    set_metadata,
)
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits, exceeded_limit
from codehub.domain.recovery import is_purge
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.services.errors import (
    IdempotencyConflict,
    InvalidState,
    LimitExceeded,
    OperationInProgress,
    VersionConflict,
    WorkspaceNotFound,
)


async def request_state(
    database: Database,
    workspace_id: WorkspaceId,
    desired: DesiredState,
    *,
    actor: str,
    limits: RunningLimits,
    now: datetime,
) -> None:
    """Write where the workspace should be; nothing happens where that is what is desired already."""
    async with database.transaction() as session:
        workspace = await lock_workspace(session, workspace_id)
        if workspace is None:
            raise WorkspaceNotFound(workspace_id)
        await change_desired_state(
            session, workspace_id, workspace, desired, actor=actor, limits=limits, now=now
        )


async def change_desired_state(
    session: AsyncSession,
    workspace_id: WorkspaceId,
    workspace: LockedWorkspace,
    desired: DesiredState,
    *,
    actor: str,
    limits: RunningLimits,
    now: datetime,
) -> None:
    """Write it in the caller's transaction, as its last lock; what is desired already is no change."""
    if desired is DesiredState.DELETED:
        raise ValueError("deleting is a request of its own")
    if workspace.phase is Phase.ERROR:
        raise InvalidState(workspace.phase, "The workspace is in an error: recover or delete it.")
    if workspace.desired_state is desired:
        return
    _check_may_change(workspace)
    if desired is DesiredState.RUNNING:
        await reserve_slot(session, workspace.owner_user_id, limits, besides=workspace_id)
    await set_desired_state(session, workspace_id, desired, now)
    await record_event(
        session,
        workspace_id,
        EventKind.STATE_REQUESTED,
        now,
        actor=actor,
        phase=workspace.phase,
        detail={"from": workspace.desired_state, "to": desired},
    )


async def delete_workspace(
    database: Database, workspace_id: WorkspaceId, *, purge: bool, actor: str, now: datetime
) -> bool:
    """Delete it, with a last archive unless it is purged; tell whether it is a purge.

    A deletion that is under way or has halted can still become a purge; else a repetition changes nothing.
    """
    async with database.transaction() as session:
        workspace = await lock_visible_workspace(session, workspace_id)
        if workspace is None:
            raise WorkspaceNotFound(workspace_id)
        purges = workspace.purge or is_purge(workspace.phase, requested=purge)
        if workspace.desired_state is DesiredState.DELETED and purges is workspace.purge:
            return purges
        if workspace.operation is not Operation.NONE:
            raise OperationInProgress(workspace.operation, workspace.op_started_at)
        await set_deleted(session, workspace_id, purge=purges, now=now)
        await record_event(
            session,
            workspace_id,
            EventKind.STATE_REQUESTED,
            now,
            actor=actor,
            phase=workspace.phase,
            detail={"from": workspace.desired_state, "to": DesiredState.DELETED, "purge": purges},
        )
    return purges


async def add_workspace(
    session: AsyncSession, new: NewWorkspace, *, actor: str, limits: RunningLimits, now: datetime
) -> None:
    """Add it in the caller's transaction, as its last lock."""
    if new.desired_state is DesiredState.RUNNING:
        await reserve_slot(session, new.owner_user_id, limits)
    await insert_workspace(session, new, now)
    detail = {"to": new.desired_state}
    await record_event(
        session, new.workspace_id, EventKind.CREATED, now, actor=actor, phase=Phase.PENDING, detail=detail
    )


def _check_may_change(workspace: LockedWorkspace) -> None:
    if workspace.desired_state is DesiredState.DELETED:
        raise InvalidState(workspace.phase, "The workspace is being deleted: undelete it first.")
    if workspace.operation is not Operation.NONE:
        raise OperationInProgress(workspace.operation, workspace.op_started_at)


KEPT_FOR = timedelta(hours=24)
# More than one for each that is added, so that they do not pile up; few enough to be quick.
FORGET_AT_ONCE = 100


async def create_once(
    database: Database,
    new: NewWorkspace,
    *,
    idempotency_key: str | None,
    request_hash: bytes,
    actor: str,
    limits: RunningLimits,
    now: datetime,
) -> WorkspaceId:
    """Add a workspace and tell its id; the owner's same request with the same key gets the first one's."""
    async with database.transaction() as session:
        if idempotency_key is not None:
            earlier = await _earlier(session, new, idempotency_key, request_hash, now)
            if earlier is not None:
                return earlier
        await add_workspace(session, new, actor=actor, limits=limits, now=now)
    return new.workspace_id


async def _earlier(
    session: AsyncSession, new: NewWorkspace, key: str, request_hash: bytes, now: datetime
) -> WorkspaceId | None:
    """What the same request has made; the key is stored with the workspace or, if that is refused, not."""
    mine = FirstRequest(request_hash, new.workspace_id)
    forget_before = now - KEPT_FOR
    first = await store_key(session, new.owner_user_id, key, mine, now=now, forget_before=forget_before)
    if first is None:
        await delete_expired_keys(session, forget_before, FORGET_AT_ONCE)
        return None
    if first.request_hash != request_hash:
        raise IdempotencyConflict
    return first.workspace_id


# Some fields of `Metadata`. None is a value: no description, or the configured TTL.
MetadataValues: TypeAlias = Mapping[str, str | int | None]


async def patch_workspace(
    database: Database,
    workspace_id: WorkspaceId,
    change: MetadataValues,
    desired: DesiredState | None,
    *,
    expected_version: int | None,
    actor: str,
    limits: RunningLimits,
    now: datetime,
) -> None:
    """Write what differs. Only a change of the desired state has to wait for an operation to end."""
    async with database.transaction() as session:
        workspace = await lock_visible_workspace(session, workspace_id)
        if workspace is None:
            raise WorkspaceNotFound(workspace_id)
        if expected_version not in {None, workspace.version}:
            raise VersionConflict(workspace.version)
        values = _differences(change, workspace.metadata)
        if values:
            await set_metadata(session, workspace_id, values, now)
            await record_event(
                session,
                workspace_id,
                EventKind.METADATA_CHANGED,
                now,
                actor=actor,
                phase=workspace.phase,
                # Names only: what a person writes is not for the audit trail.
                detail={"fields": sorted(values)},
            )
        if desired is not None:
            await change_desired_state(
                session, workspace_id, workspace, desired, actor=actor, limits=limits, now=now
            )


def _differences(change: MetadataValues, present: Metadata) -> dict[str, str | int | None]:
    return {name: value for name, value in change.items() if value != getattr(present, name)}


async def reserve_slot(
    session: AsyncSession, owner_user_id: UUID, limits: RunningLimits, besides: WorkspaceId | None = None
) -> None:
    """Hold the limits until the transaction ends, so that what was counted stays true until it is written."""
    await lock_running_limits(session)
    own = await list_running(session, owner_user_id, besides=besides)
    total = await count_running(session, besides=besides)
    scope = exceeded_limit(len(own), total, limits)
    if scope is not None:
        raise LimitExceeded(scope, own)
