"""What may be asked of a workspace: one short transaction each, and waking its workflow comes after."""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.events import EventKind, record_event
from codehub.db.session import Database
from codehub.db.workspaces import (
    LockedWorkspace,
    NewWorkspace,
    insert_workspace,
    lock_visible_workspace,
    lock_workspace,
    set_deleted,
    set_desired_state,
)
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.domain.recovery import is_purge
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.services.errors import InvalidState, OperationInProgress, WorkspaceNotFound
from codehub.services.running_slots import take_place


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
        await take_place(session, workspace.owner_user_id, limits, besides=workspace_id)
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
        await take_place(session, new.owner_user_id, limits)
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
