"""Many changes become few messages, and no change is lost."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from codehub.db.session import Connection, Database, connect
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from testkit.rows import add_user, add_workspace
from testkit.waiting import DEADLINE_SECONDS
from worker.relay import DELETED, RESYNC, UPDATED, EventRelay, PendingMessages, RelayTiming, Subject

QUICK = RelayTiming(election=0.02, first_delay=0.02, max_delay=0.1)
ONE, OTHER = Subject("ann", "one"), Subject("bob", "other")


class Viewer:
    """A bus that reads the row during each message, as a server of live updates does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.names: dict[str, str] = {}
        self.messages: Counter[str] = Counter()
        self.resynced = asyncio.Event()
        self.ended = asyncio.Event()
        self.failures: list[Exception] = []
        self.open = asyncio.Event()
        self.open.set()

    async def publish(self, user_id: str, message: str) -> None:
        assert user_id
        await self.open.wait()
        if self.failures:
            raise self.failures.pop()
        workspace_id = json.loads(message)["id"]
        name = await self._connection.fetchval(
            "SELECT name FROM workspaces WHERE id = $1", UUID(workspace_id)
        )
        self.names[workspace_id] = name
        self.messages[workspace_id] += 1
        if name == "end":
            self.ended.set()

    async def broadcast(self, message: str) -> None:
        assert json.loads(message) == {"event": RESYNC}
        self.resynced.set()


@pytest.fixture
async def viewer(database_url: str) -> AsyncIterator[Viewer]:
    connection = await connect(database_url)
    yield Viewer(connection)
    await connection.close()


@pytest.fixture
async def writer(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def workspaces(database: Database) -> list[str]:
    async with database.transaction() as session:
        owner = await add_user(session)
        return [await add_workspace(session, owner) for _ in range(10)]


@pytest.fixture
async def marker(database: Database) -> str:
    """Change a last workspace: its message comes after all waiting ones."""
    async with database.transaction() as session:
        return await add_workspace(session, await add_user(session))


async def rename(writer: Connection, workspace_id: str, name: str) -> None:
    await writer.execute("UPDATE workspaces SET name = $1 WHERE id = $2", name, UUID(workspace_id))


@asynccontextmanager
async def relaying(url: str, viewer: Viewer) -> AsyncIterator[None]:
    task = asyncio.create_task(EventRelay(url, viewer, QUICK).run())
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await viewer.resynced.wait()
            yield
            await viewer.ended.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_burst_becomes_few_messages_with_the_last_state_of_each_workspace(
    database_url: str, viewer: Viewer, writer: Connection, workspaces: list[str], marker: str
) -> None:
    async with relaying(database_url, viewer):
        # While one message is being sent, the others collect.
        viewer.open.clear()
        for step in range(100):
            for workspace_id in workspaces:
                await rename(writer, workspace_id, f"name {step}")
        viewer.open.set()
        await rename(writer, marker, "end")
    assert viewer.names == dict.fromkeys(workspaces, "name 99") | {marker: "end"}
    assert viewer.messages.total() < 500


@pytest.mark.parametrize("failures", [1, 5])
async def test_changes_during_an_outage_of_the_bus_are_sent_after_it(
    database_url: str,
    viewer: Viewer,
    writer: Connection,
    workspaces: list[str],
    marker: str,
    failures: int,
) -> None:
    viewer.failures = [Transient(ErrorReason.UNREACHABLE, "nobody answers")] * failures
    async with relaying(database_url, viewer):
        for workspace_id in workspaces:
            await rename(writer, workspace_id, "changed")
        await rename(writer, marker, "end")
    assert viewer.failures == []
    assert viewer.names == dict.fromkeys(workspaces, "changed") | {marker: "end"}


async def test_a_message_that_cannot_be_sent_does_not_block_the_others(
    database_url: str,
    viewer: Viewer,
    writer: Connection,
    workspaces: list[str],
    marker: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    viewer.failures = [ValueError("a bug")]
    async with relaying(database_url, viewer):
        await rename(writer, workspaces[0], "lost")
        await rename(writer, marker, "end")
    assert viewer.names == {marker: "end"}
    assert "a bug" in caplog.text


def drain(messages: PendingMessages) -> list[tuple[Subject | None, str]]:
    return list(iter(messages.take, None))


def test_the_first_message_is_a_resync() -> None:
    messages = PendingMessages()
    messages.add(ONE, UPDATED)
    assert drain(messages) == [(None, RESYNC), (ONE, UPDATED)]
    assert drain(messages) == []


def test_the_latest_event_of_a_workspace_stands_for_all_of_them() -> None:
    messages = PendingMessages()
    messages.take()
    for subject, event in ((ONE, UPDATED), (OTHER, DELETED), (ONE, DELETED), (OTHER, UPDATED)):
        messages.add(subject, event)
    assert drain(messages) == [(ONE, DELETED), (OTHER, UPDATED)]


def test_a_newer_event_replaces_one_that_could_not_be_sent() -> None:
    messages = PendingMessages()
    messages.take()
    messages.add(ONE, UPDATED)
    assert messages.take() == (ONE, UPDATED)
    messages.add(ONE, DELETED)
    messages.put_back(ONE, UPDATED)
    messages.put_back(OTHER, UPDATED)
    assert drain(messages) == [(OTHER, UPDATED), (ONE, DELETED)]


def test_too_many_messages_become_one_resync() -> None:
    messages = PendingMessages(capacity=100)
    messages.take()
    for number in range(101):
        messages.add(Subject("ann", str(number)), UPDATED)
    messages.add(ONE, UPDATED)
    assert drain(messages) == [(None, RESYNC), (ONE, UPDATED)]
