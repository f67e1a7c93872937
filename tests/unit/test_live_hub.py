"""Clients get a snapshot and then every change; each change is read once for all clients."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from uuid import uuid4

import pytest

from api.live.hub import LiveHub
from testkit.waiting import until
from tests.live_harness import QUICK, Event, Harness, Table, read, running

ANN, BOB = uuid4(), uuid4()
ONE, TWO, THREE = sorted(str(uuid4()) for _ in range(3))


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    async with running() as harness:
        harness.table.put(ANN, ONE, "first")
        yield harness


def names(event: Event) -> dict[str, str]:
    assert event.name == "snapshot"
    return {each["id"]: each["name"] for each in event.data["workspaces"]}


async def test_a_snapshot_comes_first_then_changes(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as client:
        assert names(await read(client)) == {ONE: "first"}
        harness.change(ANN, ONE, "second")
        updated = await read(client)
        assert (updated.name, updated.data) == ("workspace_updated", {"id": ONE, "name": "second"})
        harness.delete(ANN, ONE)
        deleted = await read(client)
        assert (deleted.name, deleted.data) == ("workspace_deleted", {"id": ONE})


async def test_all_clients_of_a_user_get_the_same_bytes_after_one_read(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as one, harness.hub.connect(ANN) as other:
        assert await anext(one) is await anext(other)
        harness.change(ANN, ONE, "second")
        assert await anext(one) is await anext(other)
    assert harness.table.reads == [None, {ONE}]
    assert harness.hub.frames_sent == 4


async def test_clients_get_no_workspaces_of_other_users(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as ann, harness.hub.connect(BOB) as bob:
        assert names(await read(ann)) == {ONE: "first"}
        assert names(await read(bob)) == {}
        harness.announce(BOB, ONE)
        harness.change(ANN, ONE, "second")
        harness.change(BOB, TWO, "of bob")
        assert (await read(ann)).data["id"] == ONE
        assert (await read(bob)).data["id"] == TWO


async def test_a_burst_of_changes_is_read_once(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        for step in range(100):
            for workspace_id in (ONE, TWO, THREE):
                harness.change(ANN, workspace_id, f"name {step}")
        events = [await read(client) for _ in range(3)]
    assert {event.data["id"]: event.data["name"] for event in events} == dict.fromkeys(
        (ONE, TWO, THREE), "name 99"
    )
    assert harness.table.reads == [None, {ONE, TWO, THREE}]


async def test_very_many_changes_are_read_as_a_whole(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        for _ in range(300):
            harness.announce(ANN, str(uuid4()))
        harness.change(ANN, ONE, "second")
        assert (await read(client)).data["name"] == "second"
    assert harness.table.reads == [None, None]


async def test_a_change_during_a_read_is_read_again(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        harness.table.free.clear()
        harness.change(ANN, ONE, "second")

        async def is_reading() -> bool:
            return len(harness.table.reads) == 2

        await until(is_reading, "the second read")
        harness.change(ANN, ONE, "third")
        harness.table.free.set()
        assert [(await read(client)).data["name"] for _ in range(2)] == ["second", "third"]


async def test_a_client_that_joins_during_a_read_gets_a_snapshot_first(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as early:
        await read(early)
        harness.table.free.clear()
        harness.change(ANN, ONE, "second")

        async def is_reading() -> bool:
            return len(harness.table.reads) == 2

        await until(is_reading, "the second read")
        async with harness.hub.connect(ANN) as late:
            harness.table.free.set()
            assert names(await read(late)) == {ONE: "second"}


async def test_the_snapshot_is_read_only_after_the_user_is_subscribed(harness: Harness) -> None:
    harness.subscription.confirms.clear()
    async with harness.hub.connect(ANN) as client:

        async def is_following() -> bool:
            return str(ANN) in harness.subscription.followed

        await until(is_following, "the user is subscribed")
        assert harness.table.reads == []
        harness.table.put(ANN, ONE, "changed meanwhile")
        harness.subscription.confirms.set()
        assert names(await read(client)) == {ONE: "changed meanwhile"}


async def test_clients_get_exactly_what_was_missed(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as ann, harness.hub.connect(BOB) as bob:
        await read(ann)
        await read(bob)
        harness.subscription.lose()
        harness.change(ANN, TWO, "unheard")
        harness.subscription.restore()
        assert (await read(ann)).data == {"id": TWO, "name": "unheard"}
        harness.change(BOB, THREE, "of bob")
        assert (await read(bob)).data["id"] == THREE


@pytest.mark.parametrize(
    "payload", ["", "nonsense", "[]", "7", '{"id": 7}', '{"event": "resync"}', "[" * 9999]
)
async def test_a_message_without_a_workspace_means_all_of_them(harness: Harness, payload: str) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        harness.table.put(ANN, ONE, "second")
        harness.subscription.publish(str(ANN), payload)
        assert (await read(client)).data["name"] == "second"


async def test_a_client_that_reconnects_up_to_date_gets_no_snapshot(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        harness.change(ANN, ONE, "second")
        last = (await read(client)).id
    # It may reconnect to another process.
    async with running(table=harness.table) as other:
        async with other.hub.connect(ANN, last_event_id=last) as client:
            assert await read(client) == Event("heartbeat", {})
            other.change(ANN, ONE, "third")
            assert (await read(client)).data["name"] == "third"
        async with other.hub.connect(ANN, last_event_id=last) as client:
            assert names(await read(client)) == {ONE: "third"}


async def test_a_client_that_got_half_of_the_changes_gets_a_snapshot(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        harness.change(ANN, ONE, "second")
        harness.change(ANN, TWO, "second")
        half = (await read(client)).id
    async with harness.hub.connect(ANN, last_event_id=half) as client:
        assert names(await read(client)) == {ONE: "second", TWO: "second"}


async def test_an_outage_of_the_database_ends_no_stream_and_is_logged_once(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with harness.hub.connect(ANN) as before:
        await read(before)
        harness.table.failures = [OSError("the database is down")] * 4
        harness.change(ANN, ONE, "second")
        # Not announced: the relay cannot read the database either.
        harness.table.put(ANN, TWO, "unheard")
        async with harness.hub.connect(ANN) as during:
            assert [(await read(before)).data["id"] for _ in range(2)] == [ONE, TWO]
            assert names(await read(during)) == {ONE: "second", TWO: "unheard"}
    assert caplog.text.count("live updates paused") == 1
    assert caplog.text.count("live updates resumed") == 1


async def test_a_read_that_never_ends_times_out_and_is_repeated() -> None:
    async with running(replace(QUICK, load=0.05)) as harness, harness.hub.connect(ANN) as client:
        harness.table.free.clear()

        async def has_read_twice() -> bool:
            return len(harness.table.reads) > 1

        await until(has_read_twice, "a second read")
        harness.table.free.set()
        assert names(await read(client)) == {}


async def test_a_bug_ends_the_streams_of_that_user_and_no_others(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    async with harness.hub.connect(ANN) as ann, harness.hub.connect(BOB) as bob:
        await read(ann)
        await read(bob)
        harness.table.put(ANN, ONE, "first")
        harness.hub._feeds[str(ANN)]._sent._digests[ONE] = "not a number"  # type: ignore[assignment]
        harness.change(ANN, ONE, "second")
        assert [data async for data in ann] == []
        harness.change(BOB, TWO, "of bob")
        assert (await read(bob)).data["id"] == TWO
    assert "live updates of user" in caplog.text


async def test_a_user_is_subscribed_while_a_client_is_connected(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as one:
        async with harness.hub.connect(ANN) as other:
            await read(other)
        await read(one)
        assert harness.subscription.followed == {str(ANN)}
        assert harness.hub.clients == 1
    assert harness.subscription.followed == set()
    assert harness.hub.clients == 0
    assert harness.hub._feeds == {}


async def test_a_client_that_leaves_at_once_causes_no_subscription(harness: Harness) -> None:
    async with harness.hub.connect(ANN):
        pass
    async with harness.hub.connect(BOB) as bob:
        await read(bob)
        assert harness.subscription.followed == {str(BOB)}


async def test_reads_for_many_users_are_limited() -> None:
    table, at_once, most = Table(), 0, 0

    async def load(*arguments: object) -> list[object]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return []

    harness = Harness(table=table)
    hub = LiveHub(harness.subscription, load, harness.board, loads_at_once=3)  # type: ignore[arg-type]
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(hub.connect(uuid4())) for _ in range(50)]
        for client in clients:
            assert json.dumps((await read(client)).data) == '{"workspaces": []}'
        await hub.close()
    assert most == 3
