"""The conformance suite of `EventSubscription`, run against Redis and the fake."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from codehub.adapters.redis.connection import create_client
from codehub.adapters.redis.events import RedisEventBus
from codehub.adapters.redis.subscription import RedisEventSubscription, SubscriptionTiming
from codehub.ports import BusMessage, EventSubscription
from testkit.fake_subscription import FakeSubscription
from testkit.redis_server import RedisServer, running_redis
from testkit.waiting import DEADLINE_SECONDS, until

EVERYBODY = BusMessage(None)
QUICK = SubscriptionTiming(check=600, confirm=DEADLINE_SECONDS, first_delay=0.02, max_delay=0.1)
IMPATIENT = SubscriptionTiming(check=600, confirm=0.05, first_delay=0.02, max_delay=0.1)


class Harness(Protocol):
    subscription: EventSubscription

    async def publish(self, user_id: str, payload: str) -> None: ...

    async def broadcast(self, payload: str) -> None: ...

    async def lose(self) -> None: ...

    async def restore(self) -> None: ...


class FakeHarness:
    def __init__(self) -> None:
        self._fake = FakeSubscription()
        self.subscription: EventSubscription = self._fake

    async def publish(self, user_id: str, payload: str) -> None:
        self._fake.publish(user_id, payload)

    async def broadcast(self, payload: str) -> None:
        self._fake.broadcast(payload)

    async def lose(self) -> None:
        self._fake.lose()

    async def restore(self) -> None:
        self._fake.restore()


class RedisHarness:
    def __init__(self, server: RedisServer, bus: RedisEventBus, timing: SubscriptionTiming) -> None:
        self.subscription: EventSubscription = RedisEventSubscription(server.url, timing)
        self.publish = bus.publish
        self.broadcast = bus.broadcast
        self._server = server

    async def lose(self) -> None:
        self._server.kill()

    async def restore(self) -> None:
        assert self._server.start()


@asynccontextmanager
async def opened(kind: str, directory: Path, timing: SubscriptionTiming) -> AsyncIterator[Harness]:
    if kind == "fake":
        yield FakeHarness()
        return
    with running_redis(directory) as server:
        async with create_client(server.url) as client:
            yield RedisHarness(server, RedisEventBus(client), timing)


class Messages:
    """All messages that a running subscription delivers."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[BusMessage] = asyncio.Queue()

    async def next(self) -> BusMessage:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self._messages.get()

    @asynccontextmanager
    async def on(self, subscription: EventSubscription) -> AsyncIterator[None]:
        task = asyncio.create_task(subscription.run(self._messages.put_nowait))
        try:
            yield
        finally:
            task.cancel()
            [outcome] = await asyncio.gather(task, return_exceptions=True)
            assert isinstance(outcome, asyncio.CancelledError), outcome


@pytest.fixture(params=["fake", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def harness(kind: str, tmp_path: Path) -> AsyncIterator[Harness]:
    async with opened(kind, tmp_path, QUICK) as harness:
        yield harness


@pytest.fixture
async def messages(harness: Harness) -> AsyncIterator[Messages]:
    """Return the messages of a connected subscription."""
    messages = Messages()
    async with messages.on(harness.subscription):
        assert await messages.next() == EVERYBODY
        yield messages


async def test_a_message_for_a_followed_user_is_delivered(harness: Harness, messages: Messages) -> None:
    assert await harness.subscription.follow("ann")
    await harness.publish("ann", "one")
    await harness.publish("ann", "two")
    assert [await messages.next(), await messages.next()] == [
        BusMessage("ann", "one"),
        BusMessage("ann", "two"),
    ]


async def test_a_message_for_another_user_is_not_delivered(harness: Harness, messages: Messages) -> None:
    assert await harness.subscription.follow("ann")
    await harness.publish("bob", "not here")
    await harness.publish("ann", "here")
    assert await messages.next() == BusMessage("ann", "here")


async def test_a_broadcast_is_delivered_as_a_message_for_everyone(
    harness: Harness, messages: Messages
) -> None:
    await harness.broadcast("look")
    assert await messages.next() == BusMessage(None, "look")


async def test_following_again_delivers_nothing_twice(harness: Harness, messages: Messages) -> None:
    follows = (harness.subscription.follow("ann") for _ in range(10))
    assert all(await asyncio.gather(*follows))
    assert await harness.subscription.follow("ann")
    await harness.publish("ann", "one")
    await harness.publish("ann", "two")
    assert [await messages.next(), await messages.next()] == [
        BusMessage("ann", "one"),
        BusMessage("ann", "two"),
    ]


async def test_nothing_is_delivered_for_an_unfollowed_user(harness: Harness, messages: Messages) -> None:
    assert await harness.subscription.follow("ann")
    harness.subscription.unfollow("ann")
    harness.subscription.unfollow("never followed")
    assert await harness.subscription.follow("bob")
    await harness.publish("ann", "not here")
    await harness.publish("bob", "here")
    assert await messages.next() == BusMessage("bob", "here")


@pytest.mark.parametrize("turns", [1, 2, 50])
@pytest.mark.parametrize("pauses", [0, 1, 3])
async def test_nothing_is_missed_by_a_user_who_left_and_came_back(
    harness: Harness, messages: Messages, turns: int, pauses: int
) -> None:
    for turn in range(turns):
        impatient = asyncio.create_task(harness.subscription.follow("ann"))
        # From before the follow request until after it.
        for _ in range(pauses):
            await asyncio.sleep(0)
        harness.subscription.unfollow("ann")
        assert await harness.subscription.follow("ann")
        await harness.publish("ann", str(turn))
        assert await messages.next() == BusMessage("ann", str(turn))
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        harness.subscription.unfollow("ann")


async def test_a_thousand_users_are_followed_at_once(harness: Harness, messages: Messages) -> None:
    users = [f"user {number}" for number in range(1000)]
    assert all(await asyncio.gather(*map(harness.subscription.follow, users)))
    for user_id in users[::100]:
        await harness.publish(user_id, "here")
        assert await messages.next() == BusMessage(user_id, "here")


async def test_all_users_are_followed_again_after_an_outage_and_the_outage_is_reported(
    harness: Harness, messages: Messages
) -> None:
    assert await harness.subscription.follow("ann")
    await harness.lose()
    await harness.restore()
    assert await messages.next() == EVERYBODY
    await harness.publish("ann", "after")
    assert await messages.next() == BusMessage("ann", "after")


async def test_a_user_who_is_followed_during_an_outage_gets_messages_after_it(
    kind: str, tmp_path: Path
) -> None:
    messages = Messages()
    async with opened(kind, tmp_path, IMPATIENT) as harness, messages.on(harness.subscription):
        assert await messages.next() == EVERYBODY
        await harness.lose()
        assert not await harness.subscription.follow("ann")
        await harness.restore()
        while await messages.next() != EVERYBODY:
            pass
        await harness.publish("ann", "after")
        while await messages.next() != BusMessage("ann", "after"):
            pass


async def test_follow_returns_false_during_an_outage(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path, IMPATIENT) as harness, Messages().on(harness.subscription):

        async def is_delivered() -> bool:
            return await harness.subscription.follow("ann")

        async def is_not_delivered() -> bool:
            return not await is_delivered()

        await until(is_delivered, "the user is followed")
        await harness.lose()
        await until(is_not_delivered, "the loss is noticed")
        await harness.restore()
        await until(is_delivered, "the user is followed again")
