"""Streams end when they must, and one that is not read delays no other."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from api.live.client import MAX_BYTES, MAX_FRAMES, LiveClient
from api.live.wire import HEARTBEAT
from testkit.waiting import until
from tests.live_harness import Event, Harness, beating, read, rest, running

ANN, BOB = uuid4(), uuid4()
ONE = str(uuid4())


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    async with running() as harness:
        harness.table.put(ANN, ONE, "first")
        yield harness


async def test_a_client_that_does_not_read_is_dropped_and_others_continue(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as stuck, harness.hub.connect(ANN) as reading:
        await read(reading)
        for number in range(MAX_FRAMES):
            harness.change(ANN, ONE, f"name {number}")
            assert (await read(reading)).data["name"] == f"name {number}"
        assert harness.hub.dropped == 1
        assert await rest(stuck) == []
        harness.change(ANN, ONE, "last")
        assert (await read(reading)).data["name"] == "last"


async def test_a_client_is_dropped_when_too_many_bytes_are_queued(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as stuck, harness.hub.connect(ANN) as reading:
        await read(reading)
        for letter in "ab":
            harness.change(ANN, ONE, letter * (MAX_BYTES // 2))
            await read(reading)
        assert harness.hub.dropped == 1
        assert await rest(stuck) == []


async def test_a_snapshot_may_be_larger_than_the_queue(harness: Harness) -> None:
    harness.table.put(ANN, ONE, "x" * (2 * MAX_BYTES))
    async with harness.hub.connect(ANN) as client:
        assert (await read(client)).name == "snapshot"


async def test_every_client_gets_heartbeats_repeatedly() -> None:
    async with running(beating(0.3)) as harness, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(harness.hub.connect(uuid4())) for _ in range(50)]

        async def has_heartbeats(client: LiveClient) -> bool:
            return [(await read(client)).name for _ in range(4)] == ["snapshot", *["heartbeat"] * 3]

        # Concurrently, because a client that does not read for a whole period is dropped.
        assert all(await asyncio.gather(*map(has_heartbeats, clients)))


async def test_heartbeats_are_sent_while_the_database_is_down() -> None:
    async with running(beating(0.3)) as harness:
        harness.table.free.clear()
        async with harness.hub.connect(ANN) as client:
            assert await read(client) == Event("heartbeat", {})


async def test_a_client_that_reads_nothing_between_heartbeats_is_dropped() -> None:
    async with running(beating(0.3)) as harness, harness.hub.connect(ANN) as stuck:

        async def is_dropped() -> bool:
            return harness.hub.dropped == 1

        await until(is_dropped, "the client that does not read is dropped")
        assert await rest(stuck) == []


async def test_a_slow_client_is_kept(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as slow:
        for number in range(5):
            harness.change(ANN, ONE, f"name {number}")
            slow.offer(HEARTBEAT)
            slow.offer(HEARTBEAT)
            assert slow.beat(HEARTBEAT)
            await read(slow)


async def test_heartbeats_are_spread_over_time(harness: Harness) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(300):
            await stack.enter_async_context(harness.hub.connect(ANN))
        assert {len(slot) for slot in harness.hub._wheel._slots} == {10}


async def test_all_streams_of_a_user_can_be_ended(harness: Harness) -> None:
    async with (
        harness.hub.connect(ANN, "one") as one,
        harness.hub.connect(ANN, "other") as other,
        harness.hub.connect(BOB, "third") as bob,
    ):
        await read(bob)
        assert harness.hub.end_user(ANN) == 2
        # Queued frames are not sent either.
        assert await rest(one) == await rest(other) == []
        harness.change(BOB, ONE, "goes on")
        assert (await read(bob)).data["name"] == "goes on"


async def test_the_streams_of_one_session_can_be_ended(harness: Harness) -> None:
    async with harness.hub.connect(ANN, "one") as one, harness.hub.connect(ANN, "other") as other:
        await read(other)
        assert harness.hub.end_credential("one") == 1
        assert await rest(one) == []
        harness.change(ANN, ONE, "goes on")
        assert (await read(other)).data["name"] == "goes on"
        assert harness.hub.end_credential("unknown") == 0


async def test_a_waiting_reader_notices_the_end(harness: Harness) -> None:
    async with harness.hub.connect(ANN, "one") as client:
        await read(client)
        reader = asyncio.create_task(rest(client))
        await asyncio.sleep(0)
        harness.hub.end_credential("one")
        assert await reader == []


async def test_closing_ends_every_stream_after_its_queued_frames(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as idle, harness.hub.connect(ANN) as waiting:
        await read(idle)
        reader = asyncio.create_task(rest(idle))
        await asyncio.sleep(0)
        await harness.hub.close()
        [farewell] = await reader
        assert farewell.startswith(b": goodbye\nretry: ")
        snapshot, farewell = await rest(waiting)
        assert snapshot.startswith(b"event: snapshot\n")
        assert farewell.endswith(b"\n\n")
    async with harness.hub.connect(ANN) as late:
        assert await rest(late) == []
    assert harness.hub.clients == 0


async def test_closing_ends_clients_that_still_wait_for_a_snapshot(harness: Harness) -> None:
    harness.table.free.clear()
    async with harness.hub.connect(ANN) as client:

        async def is_reading() -> bool:
            return harness.table.reads == [None]

        await until(is_reading, "the read for the snapshot")
        await harness.hub.close()
        assert len(await rest(client)) == 1


async def test_a_cancelled_reader_can_continue(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        reader = asyncio.create_task(rest(client))
        await asyncio.sleep(0)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        harness.change(ANN, ONE, "second")
        assert (await read(client)).data["name"] == "second"


async def test_an_idle_client_costs_little_memory(harness: Harness) -> None:
    count = 1000
    async with AsyncExitStack() as stack:
        tracemalloc.start()
        try:
            clients = [await stack.enter_async_context(harness.hub.connect(uuid4())) for _ in range(count)]
            for client in clients:
                await read(client)
            readers = [asyncio.create_task(rest(client)) for client in clients]
            await asyncio.sleep(0)
            cost = tracemalloc.get_traced_memory()[0] / count
        finally:
            tracemalloc.stop()
        for client in clients:
            client.offer(HEARTBEAT)
            client.end(b"")
        await asyncio.gather(*readers)
    assert cost < 8000
