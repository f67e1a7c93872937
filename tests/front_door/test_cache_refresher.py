"""What events do at once: here nothing is ever asked again by itself, and no time passes."""

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
from codehub.services.identity import sign_out
from proxy.cache_refresher import CacheRefresher
from proxy.caller_cache import CallerCache
from proxy.request_kind import Credentials
from proxy.workspace_cache import WorkspaceCache
from testkit.fake_world import FakeWorld
from testkit.fakes import FakeInstances
from testkit.redis_server import RedisServer, running_redis
from testkit.rows import add_workspace
from testkit.waiting import until
from tests.front_door.held_database import Clock
from tests.identities import add, enter

NEVER = 3600.0


@dataclass(frozen=True)
class Guest:
    """Somebody who is connected with a session."""

    shown: Credentials
    user_id: str
    credential: str


@dataclass
class Connections:
    """Who is connected, and whose connections were ended."""

    credentials: set[str] = field(default_factory=set)
    ended: list[str] = field(default_factory=list)

    def end_credential(self, credential: str) -> int:
        self.credentials.discard(credential)
        self.ended.append(credential)
        return 1


class Harness:
    """A keeper on a real database and a real Redis."""

    def __init__(self, database: Database, redis: Redis) -> None:
        clock = Clock()
        self.database = database
        self.redis = redis
        self.bus = RedisEventBus(redis)
        self.callers = CallerCache(database, clock)
        self.directory = WorkspaceCache(database, FakeInstances(FakeWorld()), clock)
        self.connections = Connections()

    async def guest(self, username: str = "ann") -> Guest:
        """Known and connected, and the keeper hears of them."""
        await add(self.database, username)
        entered = await enter(self.database, username, now=datetime.now(UTC))
        shown, caller = Credentials(None, entered.token), entered.caller
        await self.callers.find(shown)
        guest = Guest(shown, str(caller.user_id), str(caller.credential_id))
        self.connections.credentials.add(guest.credential)
        # Which makes it look at everything, and at who there is.
        await self.bus.broadcast("")
        await self.until_heard(guest)
        return guest

    async def until_heard(self, guest: Guest) -> None:
        async def heard() -> bool:
            with suppress(OSError):
                [(_, count)] = await self.redis.pubsub_numsub(user_channel(guest.user_id))
                return bool(count)
            return False

        await until(heard, "the keeper follows the user")

    async def sign_out(self, guest: Guest) -> None:
        found = self.callers.get(guest.shown)
        assert found is not None
        await sign_out(self.database, found.caller.credential_id, now=datetime.now(UTC))

    async def until_ended(self, guest: Guest) -> None:
        async def ended() -> bool:
            return guest.credential in self.connections.ended

        await until(ended, "the connections are ended")
        assert self.callers.get(guest.shown) is None


@asynccontextmanager
async def keeping(database: Database, redis: RedisServer) -> AsyncIterator[Harness]:
    async with create_client(redis.url) as client:
        harness = Harness(database, client)
        subscription = RedisEventSubscription(redis.url)
        keeper = CacheRefresher(harness.callers, harness.directory, subscription, period_seconds=NEVER)
        running = asyncio.create_task(keeper.run(harness.connections))
        try:
            yield harness
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.wait([running])


@pytest.fixture
async def harness(database: Database, redis_server: RedisServer) -> AsyncIterator[Harness]:
    async with keeping(database, redis_server) as opened:
        yield opened


async def test_an_event_makes_a_workspace_be_looked_at_anew(harness: Harness) -> None:
    ann = await harness.guest()
    known = harness.callers.get(ann.shown)
    assert known is not None
    async with harness.database.transaction() as session:
        changed, other = [await add_workspace(session, known.caller.user_id) for _ in range(2)]
    for workspace_id in (changed, other):
        await harness.directory.find(workspace_id)
    await harness.bus.publish(ann.user_id, f'{{"event": "workspace_updated", "id": "{changed}"}}')

    async def forgotten() -> bool:
        return harness.directory.get(changed) is None

    await until(forgotten, "what it was is not believed any more")
    assert harness.directory.get(other) is not None


async def test_a_revoked_credential_ends_at_once(harness: Harness) -> None:
    ann, bob = await harness.guest("ann"), await harness.guest("bob")
    await harness.sign_out(ann)
    assert harness.connections.ended == []
    await harness.bus.publish(ann.user_id, f'{{"event": "credentials_changed", "id": "{ann.user_id}"}}')
    await harness.until_ended(ann)
    assert harness.connections.ended == [ann.credential]
    assert harness.callers.get(bob.shown) is not None


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
async def test_what_cannot_be_understood_may_be_about_anything(harness: Harness, payload: str) -> None:
    ann = await harness.guest()
    await harness.sign_out(ann)
    await harness.bus.publish(ann.user_id, payload)
    await harness.until_ended(ann)


@pytest.mark.parametrize("payload", ["", "{}", "garbage", '{"event": "workspace_updated", "id": "x"}'])
async def test_what_is_told_to_all_makes_it_look_at_everything(harness: Harness, payload: str) -> None:
    ann = await harness.guest()
    await harness.sign_out(ann)
    await harness.bus.broadcast(payload)
    await harness.until_ended(ann)


async def test_workspaces_of_nobody_are_no_trouble(harness: Harness) -> None:
    ann = await harness.guest()
    for _ in range(3):
        unknown = WorkspaceId(ann.user_id)
        await harness.bus.publish(ann.user_id, f'{{"event": "workspace_deleted", "id": "{unknown}"}}')
    await harness.sign_out(ann)
    await harness.bus.publish(ann.user_id, '{"event": "credentials_changed"}')
    await harness.until_ended(ann)


async def test_events_are_heard_again_after_redis_was_away(database: Database, tmp_path: Path) -> None:
    with running_redis(tmp_path) as redis:
        async with keeping(database, redis) as harness:
            ann, bob = await harness.guest("ann"), await harness.guest("bob")
            redis.kill()
            await harness.sign_out(bob)
            assert await asyncio.to_thread(redis.start)
            # What was missed is found because everything is looked at.
            await harness.until_ended(bob)
            await harness.until_heard(ann)
            await harness.sign_out(ann)
            await harness.bus.publish(ann.user_id, '{"event": "credentials_changed"}')
            await harness.until_ended(ann)
