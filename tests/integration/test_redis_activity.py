"""The activity buffer keeps the latest use of each workspace until the database has it."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from codehub.adapters.redis.activity import ACTIVITY_KEY, RedisActivityBuffer
from codehub.adapters.redis.connection import create_client
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import ActivityBuffer
from testkit.processes import free_port
from testkit.rows import new_workspace_id

FIRST, SECOND, THIRD = (WorkspaceId(f"00000000-0000-4000-8000-00000000000{number}") for number in (1, 2, 3))
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


async def used(activity: ActivityBuffer, limit: int = ALL) -> Mapping[WorkspaceId, datetime]:
    return (await activity.take(limit)).used_at


async def test_a_use_is_taken_as_it_was_recorded(activity: ActivityBuffer) -> None:
    await activity.record({FIRST: NOON, SECOND: LATER})
    assert await used(activity, ALL) == {FIRST: NOON, SECOND: LATER}


async def test_the_score_is_the_time_in_seconds_to_the_millisecond(
    activity: ActivityBuffer, redis_client: Redis
) -> None:
    await activity.record({FIRST: NOON + timedelta(microseconds=400)})
    assert await redis_client.zscore(ACTIVITY_KEY, FIRST) == NOON.timestamp()


async def test_an_older_use_does_not_replace_a_newer_one(activity: ActivityBuffer) -> None:
    await activity.record({FIRST: LATER, SECOND: NOON})
    await activity.record({FIRST: NOON, SECOND: LATER})
    assert await used(activity, ALL) == {FIRST: LATER, SECOND: LATER}


async def test_the_oldest_are_taken_first_and_stay(activity: ActivityBuffer) -> None:
    await activity.record({FIRST: LATER, SECOND: NOON, THIRD: LATER + timedelta(seconds=1)})
    assert list(await used(activity, 2)) == [SECOND, FIRST]
    assert list(await used(activity, 2)) == [SECOND, FIRST]
    assert await used(activity, 0) == {}


@pytest.mark.parametrize("finer", [4e-4, 4.9e-7])
async def test_a_time_that_is_finer_than_a_microsecond_is_discarded_too(
    activity: ActivityBuffer, redis_client: Redis, finer: float
) -> None:
    await redis_client.zadd(ACTIVITY_KEY, {FIRST: NOON.timestamp() + finer, SECOND: 1 + finer})
    await activity.discard(await used(activity))
    assert await used(activity) == {}


async def test_stored_uses_are_discarded(activity: ActivityBuffer) -> None:
    await activity.record({FIRST: NOON, SECOND: LATER, THIRD: NOON})
    await activity.discard(await used(activity, 2))
    assert await used(activity, ALL) == {SECOND: LATER}


async def test_every_time_can_be_discarded_as_it_was_taken(activity: ActivityBuffer) -> None:
    moments = [NOON + timedelta(microseconds=step * 997) for step in range(2000)]
    await activity.record({new_workspace_id(): moment for moment in moments})
    taken = await used(activity, len(moments))
    assert len(taken) == len(moments)
    await activity.discard(taken)
    assert await used(activity, ALL) == {}


async def test_a_use_after_the_take_is_not_discarded(activity: ActivityBuffer) -> None:
    await activity.record({FIRST: NOON, SECOND: NOON})
    taken = await used(activity)
    await activity.record({FIRST: LATER})
    await activity.discard(taken)
    assert await used(activity, ALL) == {FIRST: LATER}


async def test_nothing_to_record_or_discard_is_fine(activity: ActivityBuffer) -> None:
    await activity.record({})
    await activity.discard({})
    await activity.discard({FIRST: NOON})
    assert await used(activity, ALL) == {}


@pytest.mark.parametrize(
    ("member", "score"),
    [
        (b"not a workspace", NOON.timestamp()),
        (b"\xff\xfe not text", NOON.timestamp()),
        (b"", NOON.timestamp()),
        (FIRST.encode() + b"A", NOON.timestamp()),
        (FIRST.encode(), float("inf")),
        (FIRST.encode(), float("-inf")),
        (FIRST.encode(), 1e18),
        (FIRST.encode(), -1e18),
    ],
)
async def test_invalid_entries_are_counted_once_and_removed(
    activity: ActivityBuffer, redis_client: Redis, member: bytes, score: float
) -> None:
    await redis_client.zadd(ACTIVITY_KEY, {member: score})
    await activity.record({SECOND: NOON, THIRD: LATER})
    taken = await activity.take(ALL)
    assert (taken.used_at, taken.rejected) == ({SECOND: NOON, THIRD: LATER}, 1)
    assert await redis_client.zcard(ACTIVITY_KEY) == 2
    assert (await activity.take(ALL)).rejected == 0


async def test_a_use_replaces_an_invalid_time(activity: ActivityBuffer, redis_client: Redis) -> None:
    await redis_client.zadd(ACTIVITY_KEY, {FIRST: float("inf")})
    await activity.take(ALL)
    await activity.record({FIRST: NOON})
    assert await used(activity) == {FIRST: NOON}


async def test_an_outage_is_unreachable(unreachable: ActivityBuffer) -> None:
    for call in (unreachable.record({FIRST: NOON}), unreachable.take(1), unreachable.discard({FIRST: NOON})):
        with pytest.raises(Transient) as caught:
            await call
        assert caught.value.reason is ErrorReason.UNREACHABLE
