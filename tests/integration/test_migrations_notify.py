"""The triggers notify listeners of changes, and of nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from sqlalchemy import delete, func, select, update

from codehub.db.models import Workspace
from codehub.db.session import Database, connect
from codehub.domain.conditions import WorkspaceId
from testkit.rows import NOW, add_user, add_workspace
from testkit.waiting import DEADLINE_SECONDS

Notice = tuple[str, str]
END = ("ws_sse", "end")
# An observation with nothing new about the instance.
SAME = {"storage.archive_ready": {"status": "True"}}


class Listener:
    """Collects the notifications of all channels, in order."""

    def __init__(self) -> None:
        self.notices: asyncio.Queue[Notice] = asyncio.Queue()

    def __call__(self, _connection: object, _pid: int, channel: str, payload: str) -> None:
        self.notices.put_nowait((channel, payload))

    async def until_end(self, database: Database) -> list[Notice]:
        """Return everything so far; they arrive in commit order, so a final one shows that all are in."""
        async with database.transaction() as session:
            await session.execute(select(func.pg_notify(*END)))
        return [notice async for notice in self._stream()]

    async def _stream(self) -> AsyncIterator[Notice]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while (notice := await self.notices.get()) != END:
                yield notice


@pytest.fixture
async def listener(database_url: str) -> AsyncIterator[Listener]:
    connection = await connect(database_url)
    listening = Listener()
    for channel in ("ws_sse", "ws_deleted", "credentials"):
        await connection.add_listener(channel, listening)
    yield listening
    await connection.close()


@pytest.fixture
async def workspace_id(database: Database) -> WorkspaceId:
    """Return a workspace that existed before the listener."""
    async with database.transaction() as session:
        return await add_workspace(session, await add_user(session), phase="RUNNING", desired_state="RUNNING")


async def change(database: Database, workspace_id: WorkspaceId, **columns: object) -> None:
    async with database.transaction() as session:
        await session.execute(update(Workspace).where(Workspace.id == UUID(workspace_id)).values(**columns))


async def test_new_workspace_is_announced_with_its_owner(database: Database, listener: Listener) -> None:
    async with database.transaction() as session:
        owner = await add_user(session)
        workspace_id = await add_workspace(session, owner)
    [(channel, payload)] = await listener.until_end(database)
    assert channel == "ws_sse"
    assert json.loads(payload) == {"id": workspace_id, "owner_user_id": str(owner)}


@pytest.mark.parametrize(
    "columns",
    [
        {"phase": "STANDBY"},
        {"operation": "STOPPING", "op_started_at": NOW},
        {"error_reason": "Unreachable"},
        {"deleted_at": NOW, "desired_state": "DELETED", "purge": True},
        {"error_message": "Docker does not respond."},
        {"name": "new"},
        {"description": "new"},
        {"memo": "new"},
        {"desired_state": "STANDBY"},
        {"archive_key": "new"},
        {"desired_state": "DELETED", "deleted_at": NOW},
        {"standby_ttl_seconds": 5},
        {"archive_ttl_seconds": 5},
        {"port_shares": {"3000": {"audience": "users"}}},
        {"conditions": {"infra.container_answers": {"status": "False"}}},
        {"conditions": {"infra.configuration_current": {"message": "Restart to apply: image."}}},
    ],
    ids=str,
)
async def test_visible_change_is_announced(
    workspace_id: WorkspaceId, database: Database, listener: Listener, columns: dict[str, object]
) -> None:
    await change(database, workspace_id, **columns)
    assert [channel for channel, _ in await listener.until_end(database)] == ["ws_sse"]


@pytest.mark.parametrize(
    "columns",
    [{"last_access_at": NOW}, {"observed_at": NOW, "conditions": SAME}, {"name": "home", "phase": "RUNNING"}],
    ids=["use", "observation", "same values"],
)
async def test_frequent_writes_announce_nothing(
    workspace_id: WorkspaceId, database: Database, listener: Listener, columns: dict[str, object]
) -> None:
    await change(database, workspace_id, **columns)
    assert await listener.until_end(database) == []


async def test_finished_deletion_is_announced_once(
    workspace_id: WorkspaceId, database: Database, listener: Listener
) -> None:
    await change(database, workspace_id, phase="DELETED", desired_state="DELETED", deleted_at=NOW)
    await change(database, workspace_id, memo="not visible any more")
    assert [channel for channel, _ in await listener.until_end(database)] == ["ws_deleted"]


async def test_removed_row_is_announced_as_deleted(
    workspace_id: WorkspaceId, database: Database, listener: Listener
) -> None:
    async with database.transaction() as session:
        await session.execute(delete(Workspace))
    [(channel, payload)] = await listener.until_end(database)
    assert channel == "ws_deleted"
    assert json.loads(payload)["id"] == workspace_id


async def test_undeleted_workspace_is_announced_again(
    workspace_id: WorkspaceId, database: Database, listener: Listener
) -> None:
    await change(database, workspace_id, phase="DELETED", desired_state="DELETED", deleted_at=NOW)
    await change(database, workspace_id, phase="ARCHIVED", desired_state="ARCHIVED", deleted_at=None)
    assert [channel for channel, _ in await listener.until_end(database)] == ["ws_deleted", "ws_sse"]
