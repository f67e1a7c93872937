"""Workspace rows in the states that tests need, written as the worker would write them."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import update

from codehub.db.archives import record_archive
from codehub.db.events import EventKind, record_event
from codehub.db.models import Workspace
from codehub.db.operations import list_operations
from codehub.db.session import Database
from codehub.domain.conditions import (
    Condition,
    Conditions,
    Reason,
    Resource,
    Status,
    WorkspaceId,
    conditions_to_json,
)
from codehub.domain.naming import archive_key
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


async def set_columns(database: Database, workspace_id: str, **columns: Any) -> None:  # noqa: ANN401
    """Write some columns of a workspace."""
    async with database.transaction() as session:
        await session.execute(update(Workspace).where(Workspace.id == UUID(workspace_id)).values(**columns))


async def begin_operation(database: Database, workspace_id: str, operation: Operation) -> None:
    await set_columns(database, workspace_id, operation=operation, op_started_at=LONG_AGO)


async def mark_deleted(database: Database, workspace_id: str, phase: Phase) -> None:
    await set_columns(database, workspace_id, phase=phase, desired_state="DELETED", deleted_at=LONG_AGO)


async def lose_node(database: Database, workspace_id: str, *archived_at: datetime) -> UUID | None:
    """Stop a workspace whose home is on a lost node; return its archive, if `archived_at` says of when."""
    archive = uuid4() if archived_at else None
    key = archive_key(WorkspaceId(workspace_id), str(archive)) if archive else None
    lost = Condition(Status.FALSE, Reason.NODE_LOST, "The home is on a disk of the node n1.", LONG_AGO)
    conditions = Conditions(
        volume_ready=_condition(Status.TRUE, Reason.COMPLETE),
        volume_reachable=lost,
        archive_ready=_condition(Status.TRUE if key else Status.FALSE, Reason.READABLE),
        container_ready=_condition(Status.FALSE, Reason.ABSENT),
        healthy=_condition(Status.TRUE, Reason.HEALTHY),
    )
    await set_columns(
        database,
        workspace_id,
        phase=Phase.STANDBY,
        desired_state=DesiredState.RUNNING,
        operation=Operation.NONE,
        op_started_at=None,
        archive_key=key,
        conditions=conditions_to_json(conditions),
        waiting_for=[Resource.VOLUME],
        waiting_since=LONG_AGO,
    )
    if key:
        async with database.transaction() as session:
            await record_archive(session, key, size_bytes=7, sha256="0" * 64, now=archived_at[0])
    return archive


async def lose_data(database: Database, workspace_id: str, *, archive_key: str | None = None) -> None:
    """Put a workspace into ERROR because its volume has vanished."""
    conditions = Conditions(
        volume_ready=_condition(Status.FALSE, Reason.VANISHED),
        archive_ready=_condition(Status.TRUE if archive_key else Status.FALSE, Reason.READABLE),
        container_ready=_condition(Status.FALSE, Reason.ABSENT),
        healthy=_condition(Status.FALSE, ErrorReason.DATA_LOST),
    )
    await set_columns(
        database,
        workspace_id,
        phase=Phase.ERROR,
        error_reason=ErrorReason.DATA_LOST,
        error_message="The volume has disappeared.",
        archive_key=archive_key,
        conditions=conditions_to_json(conditions),
    )


async def fail(database: Database, workspace_id: str, reason: ErrorReason = ErrorReason.TIMEOUT) -> None:
    """Put a workspace into ERROR for a reason that a retry may fix."""
    conditions = Conditions(healthy=_condition(Status.FALSE, reason))
    await set_columns(
        database,
        workspace_id,
        phase=Phase.ERROR,
        error_reason=reason,
        error_message="It took too long.",
        conditions=conditions_to_json(conditions),
    )


async def halt_deletion(database: Database, workspace_id: str) -> None:
    """Put a workspace into DELETING with an error: its last archive could not be made."""
    await fail(database, workspace_id, ErrorReason.RETRY_EXCEEDED)
    await mark_deleted(database, workspace_id, Phase.DELETING)


async def damage_archive(database: Database, workspace_id: str, *older: datetime) -> list[str]:
    """Damage the current archive of a workspace that also has `older` ones; return all archive ids."""
    ids = [str(uuid4()) for _ in range(len(older) + 1)]
    keys = [archive_key(WorkspaceId(workspace_id), each) for each in ids]
    async with database.transaction() as session:
        for key, made_at in zip(keys, (LONG_AGO, *older), strict=True):
            await record_archive(session, key, size_bytes=42, sha256="00", now=made_at)
    conditions = Conditions(
        volume_ready=_condition(Status.FALSE, Reason.ABSENT),
        archive_ready=_condition(Status.TRUE, Reason.READABLE),
        container_ready=_condition(Status.FALSE, Reason.ABSENT),
        healthy=_condition(Status.FALSE, ErrorReason.ARCHIVE_CORRUPTED),
    )
    await set_columns(
        database,
        workspace_id,
        phase=Phase.ERROR,
        error_reason=ErrorReason.ARCHIVE_CORRUPTED,
        error_message="The archive does not match its checksum.",
        archive_key=keys[0],
        conditions=conditions_to_json(conditions),
    )
    return ids


async def write_event(
    database: Database,
    workspace_id: str,
    kind: EventKind,
    at: datetime,
    operation: Operation | None = None,
    actor: str = "worker",
    **more: Any,  # noqa: ANN401
) -> None:
    """Write one entry of the audit trail."""
    async with database.transaction() as session:
        await record_event(
            session, WorkspaceId(workspace_id), kind, at, actor=actor, operation=operation, **more
        )


async def claim(
    database: Database, workspace_id: str, operation: Operation, claimed_at: datetime = LONG_AGO
) -> int:
    """Write the audit entry of a claimed operation and return its id."""
    await write_event(database, workspace_id, EventKind.OPERATION_CLAIMED, claimed_at, operation)
    async with database.transaction() as session:
        [record, *_] = await list_operations(session, WorkspaceId(workspace_id), before=None, limit=1)
    return record.event_id


def _condition(status: Status, reason: str) -> Condition:
    return Condition(status, reason, "For a test.", LONG_AGO)
