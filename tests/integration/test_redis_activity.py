"""The buffer keeps the latest use of each workspace until the database has it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from codehub.adapters.redis.activity import ACTIVITY_KEY, RedisActivityBuffer
from codehub.adapters.redis.connection import create_client
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import ActivityBuffer
from tests.fixtures_services import redis_client, redis_server
from tests.temporal_server import free_port

__all__ = ["redis_client", "redis_server"]

FIRST, SECOND, THIRD = (WorkspaceId(name) for name in ("first", "second", "third"))
NOON = datetime(2026, 7, 1, 12, 0, 0, 123_000, tzinfo=UTC)
LATER = NOON + timedelta(milliseconds=1)
ALL = 100


@pytest.fixture
def activity(redis_client: Redis) -> ActivityBuffer:
    return RedisActivityBuffer(redis_client)


@pytest.fixture
async def unreachable() -> AsyncIterator[ActivityBuffer]:
    async with create_client(f"redis://127.0.0.1:{free_port()}/0") as client:
        yield RedisActivityBuffer(client)


async def test_a_use_is_taken_as_it_was_recorded(activity: ActivityBuffer) -> None:
    await activity.record({FIRST: NOON, SECOND: LATER})
    assert await activity.take(ALL) == {FIRST: NOON, SECOND: LATER}


async def test_the_score_is_the_time_in_seconds_to_the_millisecond(
    activity: ActivityBuffer, redis_client: Redis
) -> None:
    await activity.record({FIRST: NOON + timedelta(microseconds=400)})
    assert await redis_client.zscore(ACTIVITY_KEY, FIRST) == NOON.timestamp()


async def test_an_older_use_does_not_replace_a_newer_one(activity: ActivityBuffer) -> None:
    await activity.record({FIRST: LATER, SECOND: NOON})
    await activity.record({FIRST: NOON, SECOND: LATER})
    assert await activity.take(ALL) == {FIRST: LATER, SECOND: LATER}


async def test_the_oldest_are_taken_first_and_stay(activity: ActivityBuffer) -> None:
    await activity.record({FIRST: LATER, SECOND: NOON, THIRD: LATER + timedelta(seconds=1)})
    assert list(await activity.take(2)) == [SECOND, FIRST]
    assert list(await activity.take(2)) == [SECOND, FIRST]
    assert await activity.take(0) == {}


async def test_what_was_stored_is_discarded(activity: ActivityBuffer) -> None:
    await activity.record({FIRST: NOON, SECOND: LATER, THIRD: NOON})
    await activity.discard(await activity.take(2))
    assert await activity.take(ALL) == {SECOND: LATER}


async def test_every_time_can_be_discarded_as_it_was_taken(activity: ActivityBuffer) -> None:
    moments = [NOON + timedelta(microseconds=step * 997) for step in range(2000)]
    await activity.record({WorkspaceId(str(number)): moment for number, moment in enumerate(moments)})
    taken = await activity.take(len(moments))
    assert len(taken) == len(moments)
    await activity.discard(taken)
    assert await activity.take(ALL) == {}


async def test_a_use_after_the_take_is_not_discarded(activity: ActivityBuffer) -> None:
    await activity.record({FIRST: NOON, SECOND: NOON})
    taken = await activity.take(ALL)
    await activity.record({FIRST: LATER})
    await activity.discard(taken)
    assert await activity.take(ALL) == {FIRST: LATER}


async def test_nothing_to_record_or_discard_is_fine(activity: ActivityBuffer) -> None:
    await activity.record({})
    await activity.discard({})
    await activity.discard({FIRST: NOON})
    assert await activity.take(ALL) == {}


async def test_an_outage_is_told_as_unreachable(unreachable: ActivityBuffer) -> None:
    for call in (unreachable.record({FIRST: NOON}), unreachable.take(1), unreachable.discard({FIRST: NOON})):
        with pytest.raises(Transient) as caught:
            await call
        assert caught.value.reason is ErrorReason.UNREACHABLE
