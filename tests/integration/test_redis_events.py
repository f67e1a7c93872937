"""Events reach their listeners and no others."""

import asyncio

import pytest
from redis.asyncio import Redis

from codehub.adapters.redis.connection import create_client
from codehub.adapters.redis.events import RESYNC_CHANNEL, RedisEventBus, user_channel
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from testkit.processes import free_port
from testkit.waiting import DEADLINE_SECONDS


async def test_a_message_reaches_listeners_of_its_user_and_no_others(redis_client: Redis) -> None:
    bus = RedisEventBus(redis_client)
    async with redis_client.pubsub(ignore_subscribe_messages=True) as listening:
        await listening.subscribe(user_channel("ann"), RESYNC_CHANNEL)
        await bus.publish("bob", "not for ann")
        await bus.publish("ann", "for ann")
        await bus.broadcast("for all")
        async with asyncio.timeout(DEADLINE_SECONDS):
            messages = listening.listen()
            received = [await anext(messages) for _ in range(2)]
    assert [(each["channel"], each["data"]) for each in received] == [
        ("codehub:sse:ann", "for ann"),
        ("codehub:sse-resync", "for all"),
    ]


async def test_publishing_without_listeners_succeeds(redis_client: Redis) -> None:
    await RedisEventBus(redis_client).publish("ann", "unheard")


async def test_an_outage_is_unreachable() -> None:
    async with create_client(f"redis://127.0.0.1:{free_port()}/0") as client:
        with pytest.raises(Transient, match="Redis cannot be used") as caught:
            await RedisEventBus(client).publish("ann", "lost")
    assert caught.value.reason is ErrorReason.UNREACHABLE
