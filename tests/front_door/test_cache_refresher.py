"""Changes that events report at once; here nothing is refreshed periodically, and no time passes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from redis.asyncio import Redis

from codehub.adapters.redis.connection import create_client
from codehub.adapters.redis.events import RedisEventBus, user_channel
from codehub.adapters.redis.subscription import RedisEventSubscription
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.port_shares import Sharing
from codehub.services.identity import sign_out
from proxy.cache_refresher import CacheRefresher
from proxy.caller_cache import CallerCache
from proxy.port_access import Guests
from proxy.request_kind import Credentials
from proxy.workspace_cache import WorkspaceCache
from testkit.fake_world import FakeWorld
from testkit.fakes import FakeInstances
from testkit.redis_server import RedisServer, running_redis
from testkit.rows import BY, add_workspace
from testkit.waiting import until
from tests.front_door.held_database import Clock
from tests.identities import add, enter

NEVER = 3600.0


@dataclass(frozen=True)
class Guest:
    """A user who is connected with a session."""

    credentials: Credentials
    user_id: str
    credential: str


@dataclass
class Connections:
    """The credentials that are connected, and those whose connections were ended."""

    credentials: set[str] = field(default_factory=set)
    ended: list[str] = field(default_factory=list)

    def end_credential(self, credential: str) -> int:
        self.credentials.discard(credential)
        self.ended.append(credential)
        return 1


class Harness:
    """A cache refresher on a real database and a real Redis."""

    def __init__(self, database: Database, redis: Redis) -> None:
        clock = Clock()
        self.database = database
        self.redis = redis
        self.bus = RedisEventBus(redis)
        self.callers = CallerCache(database, clock)
        self.cache = WorkspaceCache(database, FakeInstances(FakeWorld()), clock)
        self.connections = Connections()

    async def guest(self, username: str = "ann") -> Guest:
        """Add a user who is cached, connected and followed by the refresher."""
        await add(self.database, username)
        entered = await enter(self.database, username, now=datetime.now(UTC))
        credentials, caller = Credentials(None, entered.token), entered.caller
        await self.callers.find(credentials)
        guest = Guest(credentials, str(caller.user_id), str(caller.credential_id))
        self.connections.credentials.add(guest.credential)
        # Makes the refresher look at all users.
        await self.bus.broadcast("")
        await self.wait_until_followed(guest)
        return guest

    async def wait_until_followed(self, guest: Guest) -> None:
        async def heard() -> bool:
            with suppress(OSError):
                [(_, count)] = await self.redis.pubsub_numsub(user_channel(guest.user_id))
                return bool(count)
            return False

        await until(heard, "the refresher follows the user")

    async def sign_out(self, guest: Guest) -> None:
        found = self.callers.get(guest.credentials)
        assert found is not None
        await sign_out(self.database, found.caller.credential_id, by=BY, now=datetime.now(UTC))

    async def wait_until_ended_for(self, guest: Guest) -> None:
        async def ended() -> bool:
            return guest.credential in self.connections.ended

        await until(ended, "the connections are ended")
        assert self.callers.get(guest.credentials) is None


@asynccontextmanager
async def running_refresher(database: Database, redis: RedisServer) -> AsyncIterator[Harness]:
    async with create_client(redis.url) as client:
        harness = Harness(database, client)
        subscription = RedisEventSubscription(redis.url)
        refresher = CacheRefresher(
            harness.callers,
            harness.cache,
            subscription,
            Guests(harness.cache, Sharing.PUBLIC),
            period_seconds=NEVER,
        )
        running = asyncio.create_task(refresher.run(harness.connections))
        try:
            yield harness
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.wait([running])


@pytest.fixture
async def harness(database: Database, redis_server: RedisServer) -> AsyncIterator[Harness]:
    async with running_refresher(database, redis_server) as opened:
        yield opened


async def test_an_event_invalidates_its_workspace(harness: Harness) -> None:
    ann = await harness.guest()
    cached = harness.callers.get(ann.credentials)
    assert cached is not None
    async with harness.database.transaction() as session:
        changed, other = [await add_workspace(session, cached.caller.user_id) for _ in range(2)]
    for workspace_id in (changed, other):
        await harness.cache.find(workspace_id)
    await harness.bus.publish(ann.user_id, f'{{"event": "workspace_updated", "id": "{changed}"}}')

    async def invalidated() -> bool:
        return harness.cache.get(changed) is None

    await until(invalidated, "the cached workspace is no longer fresh")
    assert harness.cache.get(other) is not None


async def test_connections_of_a_revoked_credential_end_at_once(harness: Harness) -> None:
    ann, bob = await harness.guest("ann"), await harness.guest("bob")
    await harness.sign_out(ann)
    assert harness.connections.ended == []
    await harness.bus.publish(ann.user_id, f'{{"event": "credentials_changed", "id": "{ann.user_id}"}}')
    await harness.wait_until_ended_for(ann)
    assert harness.connections.ended == [ann.credential]
    assert harness.callers.get(bob.credentials) is not None


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "{",
        "null",
        "17",
        '"text"',
        '["event"]',
        "{}",
        '{"event": {}}',
        '{"event": "workspace_updated"}',
        '{"event": "workspace_updated", "id": null}',
        '{"event": "workspace_updated", "id": 5}',
        '{"event": "workspace_updated", "id": ["a"]}',
        '{"event": "workspace_updated", "id": "../etc/passwd"}',
        "[" * 100_000,
        "9" * 10_000,
    ],
    ids=lambda payload: payload[:48],
)
async def test_a_malformed_message_refreshes_everything(harness: Harness, payload: str) -> None:
    ann = await harness.guest()
    await harness.sign_out(ann)
    await harness.bus.publish(ann.user_id, payload)
    await harness.wait_until_ended_for(ann)


@pytest.mark.parametrize("payload", ["", "{}", "garbage", '{"event": "workspace_updated", "id": "x"}'])
async def test_a_broadcast_refreshes_everything(harness: Harness, payload: str) -> None:
    ann = await harness.guest()
    await harness.sign_out(ann)
    await harness.bus.broadcast(payload)
    await harness.wait_until_ended_for(ann)


async def test_events_about_unknown_workspaces_are_harmless(harness: Harness) -> None:
    ann = await harness.guest()
    for _ in range(3):
        unknown = WorkspaceId(ann.user_id)
        await harness.bus.publish(ann.user_id, f'{{"event": "workspace_deleted", "id": "{unknown}"}}')
    await harness.sign_out(ann)
    await harness.bus.publish(ann.user_id, '{"event": "credentials_changed"}')
    await harness.wait_until_ended_for(ann)


async def test_events_arrive_again_after_a_redis_outage(database: Database, tmp_path: Path) -> None:
    with running_redis(tmp_path) as redis:
        async with running_refresher(database, redis) as harness:
            ann, bob = await harness.guest("ann"), await harness.guest("bob")
            redis.kill()
            await harness.sign_out(bob)
            assert await asyncio.to_thread(redis.start)
            # The event was lost, but reconnecting refreshes everything.
            await harness.wait_until_ended_for(bob)
            await harness.wait_until_followed(ann)
            await harness.sign_out(ann)
            await harness.bus.publish(ann.user_id, '{"event": "credentials_changed"}')
            await harness.wait_until_ended_for(ann)
