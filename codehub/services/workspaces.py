"""Creating and changing workspaces: one short transaction each. Callers wake the workflow afterwards."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TypeAlias

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.events import EventKind
from codehub.db.idempotency import FirstRequest, delete_expired_keys, store_key
from codehub.db.session import Database
from codehub.db.workspaces import (
    LockedWorkspace,
    Metadata,
    NewWorkspace,
    insert_workspace,
    lock_visible_workspace,
    lock_workspace,
    set_desired_state,
    set_metadata,
)
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Phase
from codehub.services.errors import IdempotencyConflict, InvalidState, VersionConflict, WorkspaceNotFound
from codehub.services.requests import (
    RequestContext,
    record_request,
    require_disk_space,
    require_enabled_owner,
    require_idle,
    reserve_slot,
)

# Some fields of `Metadata`. None is a value: no description, or the configured TTL.
MetadataValues: TypeAlias = Mapping[str, str | int | None]

KEY_LIFETIME = timedelta(hours=24)
# Each creation adds one key and removes up to this many expired ones, so they do not pile up.
EXPIRED_KEYS_PER_REQUEST = 100


async def create_once(
    database: Database,
    new: NewWorkspace,
    *,
    idempotency_key: str | None,
    request_hash: bytes,
    context: RequestContext,
) -> WorkspaceId:
    """Create a workspace and return its id; repeating the request with the same key returns the first id."""
    async with database.transaction() as session:
        if idempotency_key is not None:
            earlier = await _find_earlier(session, new, idempotency_key, request_hash, context)
            if earlier is not None:
                return earlier
        await _insert(session, new, context)
    return new.workspace_id


async def request_state(
    database: Database, workspace_id: WorkspaceId, desired: DesiredState, *, context: RequestContext
) -> None:
    """Set the desired state; do nothing if it is that already."""
    async with database.transaction() as session:
        workspace = await lock_workspace(session, workspace_id)
        if workspace is None:
            raise WorkspaceNotFound(workspace_id)
        await _change_desired_state(session, workspace, desired, context)


async def patch_workspace(
    database: Database,
    workspace_id: WorkspaceId,
    change: MetadataValues,
    desired: DesiredState | None,
    *,
    expected_version: int | None,
    context: RequestContext,
) -> None:
    """Write what differs, all or nothing. Only the desired state has to wait for an operation to end."""
    async with database.transaction() as session:
        workspace = await lock_visible_workspace(session, workspace_id)
        if workspace is None:
            raise WorkspaceNotFound(workspace_id)
        if expected_version not in {None, workspace.version}:
            raise VersionConflict(workspace.version)
        await _change_metadata(session, workspace, change, context)
        if desired is not None:
            await _change_desired_state(session, workspace, desired, context)


async def _find_earlier(
    session: AsyncSession, new: NewWorkspace, key: str, request_hash: bytes, context: RequestContext
) -> WorkspaceId | None:
    """Return what the same request created earlier; if there is none, store the key for this one."""
    expired_before = context.now - KEY_LIFETIME
    first = await store_key(
        session,
        new.owner_user_id,
        key,
        FirstRequest(request_hash, new.workspace_id),
        now=context.now,
        expired_before=expired_before,
    )
    if first is None:
        await delete_expired_keys(session, expired_before, EXPIRED_KEYS_PER_REQUEST)
        return None
    if first.request_hash != request_hash:
        raise IdempotencyConflict
    return first.workspace_id


async def _insert(session: AsyncSession, new: NewWorkspace, context: RequestContext) -> None:
    if new.desired_state is DesiredState.RUNNING:
        await require_enabled_owner(session, new.owner_user_id, Phase.PENDING)
        await reserve_slot(session, new.owner_user_id, context.limits)
    await insert_workspace(session, new, context.now)
    detail = {"to": new.desired_state}
    await record_request(session, context, new.workspace_id, EventKind.CREATED, Phase.PENDING, detail=detail)


async def _change_metadata(
    session: AsyncSession, workspace: LockedWorkspace, change: MetadataValues, context: RequestContext
) -> None:
    values = _differences(change, workspace.metadata)
    if not values:
        return
    await set_metadata(session, workspace.workspace_id, values, context.now)
    # Names only: what a person writes does not belong in the audit trail.
    detail = {"fields": sorted(values)}
    await record_request(
        session, context, workspace.workspace_id, EventKind.METADATA_CHANGED, workspace.phase, detail=detail
    )


async def _change_desired_state(
    session: AsyncSession, workspace: LockedWorkspace, desired: DesiredState, context: RequestContext
) -> None:
    if desired is DesiredState.DELETED:
        raise ValueError("use delete_workspace")
    if workspace.phase is Phase.ERROR:
        raise InvalidState(workspace.phase, "The workspace is in an error: recover or delete it.")
    if workspace.desired_state is desired:
        return
    if workspace.desired_state is DesiredState.DELETED:
        raise InvalidState(workspace.phase, "The workspace is being deleted: undelete it first.")
    require_idle(workspace.operation, workspace.op_started_at)
    if desired is DesiredState.RUNNING:
        await require_enabled_owner(session, workspace.owner_user_id, workspace.phase)
        require_disk_space(workspace, context.limits)
        await reserve_slot(session, workspace.owner_user_id, context.limits, excluding=workspace.workspace_id)
    await set_desired_state(session, workspace.workspace_id, desired, context.now)
    detail = {"from": workspace.desired_state, "to": desired}
    await record_request(
        session, context, workspace.workspace_id, EventKind.STATE_REQUESTED, workspace.phase, detail=detail
    )


def _differences(change: MetadataValues, present: Metadata) -> dict[str, str | int | None]:
    return {name: value for name, value in change.items() if value != getattr(present, name)}
