"""Insert rows for tests; a test names only the columns that it is about."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import User, Workspace
from codehub.domain.conditions import Snapshot, WorkspaceId, conditions_to_json
from codehub.domain.states import Operation
from codehub.services.audit import Actor

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
# The actor in the audit log when a test changes accounts.
BY = Actor("test")


def new_workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid4()))


async def add_user(session: AsyncSession, username: str | None = None) -> UUID:
    user_id = uuid4()
    await session.execute(
        insert(User).values(id=user_id, username=username or str(user_id), password_hash="-")  # noqa: S106
    )
    return user_id


async def add_workspace(session: AsyncSession, owner_user_id: UUID, **columns: Any) -> WorkspaceId:  # noqa: ANN401
    """Add a PENDING workspace with the desired state ARCHIVED, changed by `columns`."""
    workspace_id = columns.pop("id", None) or uuid4()
    values = {
        "name": "home",
        "image_ref": "image",
        "instance_backend": "local",
        "storage_backend": "local-dir",
        "home_store_key": f"ws-{workspace_id}-home",
        "phase": "PENDING",
        "phase_changed_at": NOW,
        "desired_state": "ARCHIVED",
        **columns,
    }
    await session.execute(insert(Workspace).values(id=workspace_id, owner_user_id=owner_user_id, **values))
    return WorkspaceId(str(workspace_id))


async def add_snapshot(session: AsyncSession, owner_user_id: UUID, snapshot: Snapshot) -> None:
    """Add a row that loads as this snapshot."""
    await add_workspace(
        session,
        owner_user_id,
        id=UUID(snapshot.workspace_id),
        desired_state=snapshot.desired_state,
        phase=snapshot.phase,
        operation=snapshot.operation,
        op_started_at=None if snapshot.operation is Operation.NONE else NOW,
        conditions=conditions_to_json(snapshot.conditions),
        archive_key=snapshot.archive_key,
        archive_op_id=UUID(snapshot.archive_op_id) if snapshot.archive_op_id else None,
        home_ctx={"restore_marker": snapshot.restore_marker},
        error_reason=snapshot.error_reason,
        error_message=snapshot.error_message,
        error_count=snapshot.error_count,
        deleted_at=NOW if snapshot.deleted else None,
        purge=snapshot.purge,
    )
