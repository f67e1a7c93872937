"""Live updates survive outages of Redis and of the connection to it."""

import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from redis.asyncio import Redis

from api.live.client import LiveClient
from api.live.feed import LiveTiming
from api.live.hub import LiveHub
from api.live.wire import LiveWorkspace
from codehub.adapters.redis.connection import create_client
from codehub.adapters.redis.events import RedisEventBus, user_channel
from codehub.adapters.redis.subscription import (
    RedisEventSubscription,
    SubscriberConnection,
    SubscriptionTiming,
)
from codehub.ports import BusMessage
from testkit.fakes import FakeProgressBoard
from testkit.redis_server import RedisServer, running_redis
from testkit.waiting import DEADLINE_SECONDS, until

EVERYBODY = BusMessage(None)
QUICK = SubscriptionTiming(
    check=600, response=DEADLINE_SECONDS, confirm=DEADLINE_SECONDS, first_delay=0.02, max_delay=0.1
)
WATCHFUL = SubscriptionTiming(check=0.02, response=0.2, confirm=0.05, first_delay=0.02, max_delay=0.1)
PATIENT = SubscriptionTiming(check=600, response=DEADLINE_SECONDS, confirm=0.05)

Messages = asyncio.Queue[BusMessage]


@asynccontextmanager
async def running(subscription: RedisEventSubscription) -> AsyncIterator[Messages]:
    """Wait until the subscription is connected."""
    messages: Messages = asyncio.Queue()
    task = asyncio.create_task(subscription.run(messages.put_nowait))
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while await messages.get() != EVERYBODY:
                pass
            yield messages
    finally:
        task.cancel()
        [outcome] = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError), outcome


@asynccontextmanager
async def frozen(server: RedisServer) -> AsyncIterator[None]:
    """Pause Redis; its connections stay open."""
    assert server._process is not None
    os.kill(server._process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server._process.pid, signal.SIGCONT)


async def logged(caplog: pytest.LogCaptureFixture, words: str) -> None:
    async def is_there() -> bool:
        return words in caplog.text

    await until(is_there, f"{words!r} in the log")


async def subscriptions(client: Redis) -> int:
    """Return the number of subscribers, each with all of its channels on one connection."""
    return sum(connection["sub"] != "0" for connection in await client.client_list(_type="pubsub"))


async def test_one_connection_serves_all_followed_users_and_no_others(
    redis_server: RedisServer, redis_client: Redis
) -> None:
    users = [str(uuid4()) for _ in range(300)]
    before = await subscriptions(redis_client)
    subscription = RedisEventSubscription(redis_server.url, QUICK)
    async with running(subscription):
        assert all(await asyncio.gather(*map(subscription.follow, users)))
        assert await subscriptions(redis_client) == before + 1
        for user_id in users[1:]:
            subscription.unfollow(user_id)

        async def only_the_first_is_left() -> bool:
            channels = await redis_client.pubsub_channels(user_channel("*"))
            return set(channels) & set(map(user_channel, users)) == {user_channel(users[0])}

        await until(only_the_first_is_left, "Redis has been told of all who left")


async def test_a_connection_that_redis_ends_is_replaced(
    redis_server: RedisServer, redis_client: Redis
) -> None:
    subscription = RedisEventSubscription(redis_server.url, QUICK)
    async with running(subscription) as messages:
        assert await subscription.follow("ann")
        for _ in range(3):
            await redis_client.client_kill_filter(_type="pubsub")
            assert await messages.get() == EVERYBODY
            await RedisEventBus(redis_client).publish("ann", "heard")
            assert await messages.get() == BusMessage("ann", "heard")


async def test_a_long_outage_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with running_redis(tmp_path) as server:
        subscription = RedisEventSubscription(server.url, QUICK)
        async with running(subscription) as messages:
            server.kill()

            async def has_tried_often() -> bool:
                return subscription._failures > 5

            await until(has_tried_often, "many attempts to connect")
            assert server.start()
            assert await messages.get() == EVERYBODY
    assert caplog.text.count("no live updates until Redis is back") == 1
    assert caplog.text.count("Redis is back: live updates continue") == 1


async def test_redis_can_start_later_than_its_subscriber(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        server.kill()
        subscription = RedisEventSubscription(server.url, WATCHFUL)
        assert not await subscription.follow("ann")
        assert server.start()
        async with running(subscription), create_client(server.url) as client:
            assert await client.pubsub_numsub(user_channel("ann")) == [(user_channel("ann"), 1)]


async def test_a_connection_that_has_gone_silent_is_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_redis(tmp_path) as server:
        subscription = RedisEventSubscription(server.url, WATCHFUL)
        async with running(subscription) as messages:
            async with frozen(server):
                await logged(caplog, "gone silent")
            assert await messages.get() == EVERYBODY


async def test_an_idle_connection_is_kept(
    redis_server: RedisServer, redis_client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    async def pings() -> int:
        statistics = await redis_client.info("commandstats")
        return int(statistics.get("cmdstat_ping", {"calls": 0})["calls"])

    timing = SubscriptionTiming(check=0.02, response=DEADLINE_SECONDS)
    async with running(RedisEventSubscription(redis_server.url, timing)) as messages:
        before = await pings()

        async def was_checked_often() -> bool:
            return await pings() > before + 5

        await until(was_checked_often, "several checks")
        assert messages.empty()
    assert "no live updates" not in caplog.text


async def test_a_user_who_is_confirmed_too_late_gets_a_resync(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        subscription = RedisEventSubscription(server.url, PATIENT)
        async with running(subscription) as messages:
            async with frozen(server):
                assert not await subscription.follow("ann")
            assert await messages.get() == BusMessage("ann")
            assert await subscription.follow("ann")
            assert messages.empty()


async def test_only_the_last_of_several_confirmations_counts(redis_client: Redis) -> None:
    async with redis_client.pubsub() as pubsub:
        connection = SubscriberConnection(pubsub, QUICK)
        await connection.open({"ann"})
        await connection.update(set(), {"ann"})
        await connection.update({"ann"}, set())
        # The confirmation of the first subscription, which has ended since.
        connection.confirm("ann")
        assert not connection.is_subscribed("ann")
        connection.confirm("ann")
        assert connection.is_subscribed("ann")


OWNER = uuid4()
WORKSPACE = str(uuid4())


class Table:
    """One workspace in a database."""

    def __init__(self) -> None:
        self.name = "first"

    async def load(self, _user_id: UUID, _ids: Collection[str] | None) -> Sequence[LiveWorkspace]:
        return [LiveWorkspace(WORKSPACE, json.dumps({"id": WORKSPACE, "name": self.name}))]


async def name_in(client: LiveClient) -> str:
    """Return the state in the next frame about the workspace."""
    while True:
        async with asyncio.timeout(DEADLINE_SECONDS):
            data = json.loads((await anext(client)).partition(b"data: ")[2])
        [workspace] = data.get("workspaces", [data] if "name" in data else [{}])
        if workspace:
            return str(workspace["name"])


async def test_a_browser_gets_what_changed_while_redis_was_down(tmp_path: Path) -> None:
    table = Table()
    with running_redis(tmp_path) as server:
        subscription = RedisEventSubscription(server.url, QUICK)
        hub = LiveHub(subscription, table.load, FakeProgressBoard(), timing=LiveTiming(gather=0.01))
        task = asyncio.create_task(hub.run())
        async with hub.connect(OWNER) as browser, create_client(server.url) as client:
            assert await name_in(browser) == "first"
            table.name = "second"
            message = json.dumps({"event": "workspace_updated", "id": WORKSPACE})
            await RedisEventBus(client).publish(str(OWNER), message)
            assert await name_in(browser) == "second"
            server.kill()
            table.name = "third"
            assert server.start()
            assert await name_in(browser) == "third"
        await hub.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
