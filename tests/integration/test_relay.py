"""One relay at a time sends the changes of PostgreSQL to Redis, through crashes and outages."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from sqlalchemy import TextClause, text, update

from codehub.adapters.redis.connection import create_client
from codehub.adapters.redis.events import RESYNC_CHANNEL, RedisEventBus, user_channel
from codehub.db.models import User, Workspace
from codehub.db.session import Database, connect
from codehub.domain.conditions import WorkspaceId
from testkit import postgres
from testkit.redis_server import running_redis
from testkit.rows import NOW, add_user, add_workspace
from testkit.waiting import DEADLINE_SECONDS
from worker.relay import APPLICATION_NAME, RELAY_LOCK, EventRelay, RelayBus, RelayTiming

# It notices the end of its connection without checks.
QUICK = RelayTiming(election=0.02, check=600, first_delay=0.02, max_delay=0.1, gather=0.01)
NEVER_AGAIN = RelayTiming(election=0.02, first_delay=600)
# PostgreSQL shows the two halves of the lock's key.
HOLDER = text(
    "SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE locktype = 'advisory' "
    "AND classid::bigint << 32 | objid::bigint = :lock AND datname = current_database()"
).bindparams(lock=RELAY_LOCK)
RELAYS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = :name AND datname = current_database()"
).bindparams(name=APPLICATION_NAME)
END = text("SELECT pg_terminate_backend(:pid)::int")
NOTIFY = text("SELECT count(pg_notify('ws_sse', :payload))")

Message = tuple[str, dict[str, str]]


class Listener:
    """All messages on the channels of all users and on the resync channel, in order."""

    def __init__(self, subscription: PubSub) -> None:
        self._subscription = subscription

    async def next(self) -> Message:
        async with asyncio.timeout(DEADLINE_SECONDS):
            message = await anext(self._subscription.listen())
        return message["channel"], json.loads(message["data"])

    async def until(self, last: Message) -> list[Message]:
        """Return the messages before the last one."""
        messages = []
        while (message := await self.next()) != last:
            messages.append(message)
        return messages


@asynccontextmanager
async def listening(client: Redis) -> AsyncIterator[Listener]:
    async with client.pubsub(ignore_subscribe_messages=True) as subscription:
        await subscription.psubscribe(user_channel("*"), RESYNC_CHANNEL)
        # Wait until Redis has confirmed both subscriptions.
        for _ in range(2):
            await subscription.get_message(timeout=DEADLINE_SECONDS)
        yield Listener(subscription)


@asynccontextmanager
async def relaying(url: str, bus: RelayBus, timing: RelayTiming = QUICK) -> AsyncIterator[None]:
    task = asyncio.create_task(EventRelay(url, bus, timing).run())
    try:
        yield
    finally:
        task.cancel()
        [outcome] = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError), outcome


@pytest.fixture
async def owner(database: Database) -> UUID:
    async with database.transaction() as session:
        return await add_user(session)


@pytest.fixture
async def workspaces(database: Database, owner: UUID) -> list[WorkspaceId]:
    async with database.transaction() as session:
        return [await add_workspace(session, owner) for _ in range(20)]


@pytest.fixture
async def listener(redis_client: Redis) -> AsyncIterator[Listener]:
    async with listening(redis_client) as opened:
        yield opened


@pytest.fixture
def bus(redis_client: Redis) -> RedisEventBus:
    return RedisEventBus(redis_client)


RESYNC: Message = (RESYNC_CHANNEL, {"event": "resync"})


def updated(owner: UUID, workspace_id: WorkspaceId) -> Message:
    return user_channel(str(owner)), {"event": "workspace_updated", "id": workspace_id}


def deleted(owner: UUID, workspace_id: WorkspaceId) -> Message:
    return user_channel(str(owner)), {"event": "workspace_deleted", "id": workspace_id}


async def disable(database: Database, user_id: UUID) -> None:
    async with database.transaction() as session:
        await session.execute(update(User).where(User.id == user_id).values(disabled_at=NOW))


async def change(database: Database, workspace_id: WorkspaceId, **columns: object) -> None:
    async with database.transaction() as session:
        await session.execute(update(Workspace).where(Workspace.id == UUID(workspace_id)).values(**columns))


async def number(database: Database, query: TextClause) -> int:
    async with database.transaction() as session:
        return await session.scalar(query) or 0


async def logged(caplog: pytest.LogCaptureFixture, words: str) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while words not in caplog.text:  # noqa: ASYNC110 (nothing tells when a line is logged)
            await asyncio.sleep(0.01)


async def relays_connected(database: Database, count: int) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while await number(database, RELAYS) != count:  # noqa: ASYNC110 (nor when somebody connects)
            await asyncio.sleep(0.01)


async def end_holder(database: Database) -> None:
    pid = await number(database, HOLDER)
    assert pid
    assert await number(database, END.bindparams(pid=pid))


async def test_a_change_reaches_the_owners_channel_after_a_resync(
    database: Database,
    database_url: str,
    bus: RedisEventBus,
    listener: Listener,
    owner: UUID,
    workspaces: list[WorkspaceId],
) -> None:
    async with relaying(database_url, bus):
        assert await listener.next() == RESYNC
        await change(database, workspaces[0], phase="STANDBY")
        assert await listener.next() == updated(owner, workspaces[0])
        await change(database, workspaces[0], phase="DELETED", desired_state="DELETED", deleted_at=NOW)
        assert await listener.next() == deleted(owner, workspaces[0])


async def test_revoked_credentials_reach_the_channel_of_their_user(
    database: Database, database_url: str, bus: RedisEventBus, listener: Listener, owner: UUID
) -> None:
    async with relaying(database_url, bus):
        assert await listener.next() == RESYNC
        await disable(database, owner)
        expected = {"event": "credentials_changed", "id": str(owner)}
        assert await listener.next() == (user_channel(str(owner)), expected)


async def test_a_use_or_an_invalid_notification_is_not_sent(
    database: Database,
    database_url: str,
    bus: RedisEventBus,
    listener: Listener,
    owner: UUID,
    workspaces: list[WorkspaceId],
    caplog: pytest.LogCaptureFixture,
) -> None:
    foreign = ("", "nonsense", "[]", "7", '{"id": "x"}')
    async with relaying(database_url, bus):
        assert await listener.next() == RESYNC
        await change(database, workspaces[0], last_access_at=NOW)
        for payload in foreign:
            await number(database, NOTIFY.bindparams(payload=payload))
        await change(database, workspaces[1], phase="STANDBY")
        assert await listener.until(updated(owner, workspaces[1])) == []
    assert caplog.text.count("ignored an invalid notification") == len(foreign)


async def test_two_relays_send_each_change_once(
    database: Database,
    database_url: str,
    bus: RedisEventBus,
    listener: Listener,
    owner: UUID,
    workspaces: list[WorkspaceId],
) -> None:
    async with relaying(database_url, bus), relaying(database_url, bus):
        await relays_connected(database, 2)
        assert await listener.next() == RESYNC
        for workspace_id in workspaces:
            await change(database, workspace_id, phase="STANDBY")
        messages = await listener.until(updated(owner, workspaces[-1]))
    assert messages == [updated(owner, workspace_id) for workspace_id in workspaces[:-1]]


async def test_another_relay_takes_over_when_the_connection_of_the_first_ends(
    database: Database,
    database_url: str,
    bus: RedisEventBus,
    listener: Listener,
    owner: UUID,
    workspaces: list[WorkspaceId],
) -> None:
    async with relaying(database_url, bus, NEVER_AGAIN):
        assert await listener.next() == RESYNC
        async with relaying(database_url, bus):
            await relays_connected(database, 2)
            await end_holder(database)
            assert await listener.next() == RESYNC
            await change(database, workspaces[0], phase="STANDBY")
            assert await listener.next() == updated(owner, workspaces[0])


async def test_another_relay_takes_over_when_the_first_is_cancelled(
    database: Database, database_url: str, bus: RedisEventBus, listener: Listener
) -> None:
    first = asyncio.create_task(EventRelay(database_url, bus, QUICK).run())
    assert await listener.next() == RESYNC
    async with relaying(database_url, bus):
        await relays_connected(database, 2)
        first.cancel()
        assert await listener.next() == RESYNC
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_frozen_relay_does_not_keep_the_lock(
    database: Database, database_url: str, bus: RedisEventBus, listener: Listener
) -> None:
    # It never checks its connection, like a frozen process.
    frozen = RelayTiming(check=600, silence=0.1, first_delay=600)
    async with relaying(database_url, bus, frozen):
        assert await listener.next() == RESYNC
        async with relaying(database_url, bus):
            assert await listener.next() == RESYNC


async def test_a_relay_comes_back_after_an_outage_of_postgresql(
    database: Database,
    database_url: str,
    postgres_server: postgres.Server,
    bus: RedisEventBus,
    listener: Listener,
    owner: UUID,
    workspaces: list[WorkspaceId],
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = database_url.partition("@/")[2].partition("?")[0]
    administrator = await connect(postgres_server.url("postgres"))
    async with relaying(database_url, bus):
        assert await listener.next() == RESYNC
        await administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await end_holder(database)
        await logged(caplog, "not currently accepting connections")
        await administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert await listener.next() == RESYNC
        await change(database, workspaces[0], phase="STANDBY")
        assert await listener.next() == updated(owner, workspaces[0])
    await administrator.close()


async def test_later_changes_arrive_after_a_restart_of_redis(
    database: Database,
    database_url: str,
    owner: UUID,
    workspaces: list[WorkspaceId],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_redis(tmp_path) as server:
        async with (
            create_client(server.url) as client,
            listening(client) as before,
            relaying(database_url, RedisEventBus(client)),
        ):
            assert await before.next() == RESYNC
            server.kill()
            await change(database, workspaces[0], phase="STANDBY")
            await logged(caplog, "no live updates until the event bus is back")
            assert server.start()
            async with listening(client) as after:
                await change(database, workspaces[1], phase="STANDBY")
                await after.until(updated(owner, workspaces[1]))
