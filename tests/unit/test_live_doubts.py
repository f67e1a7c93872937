"""Whose credentials are to be looked at, after which messages."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from api.live.hub import LiveHub
from tests.live_harness import Bench, read, running
from tests.waiting import DEADLINE_SECONDS

ANN, BOB = uuid4(), uuid4()
WORKSPACE = str(uuid4())


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running() as bench:
        yield bench


async def take(hub: LiveHub) -> set[str]:
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await hub.doubts.take()


def is_doubted(hub: LiveHub) -> bool:
    """Whether somebody who looks would not have to wait."""
    taking = hub.doubts.take()
    try:
        taking.send(None)
    except StopIteration:
        return True
    taking.close()
    return False


async def test_a_revocation_makes_the_credentials_of_that_user_doubted(bench: Bench) -> None:
    async with (
        bench.hub.connect(ANN, "one") as ann,
        bench.hub.connect(ANN, "two") as other,
        bench.hub.connect(BOB, "three") as bob,
    ):
        for client in (ann, other, bob):
            await read(client)
        bench.revoke(ANN)
        assert await take(bench.hub) == {"one", "two"}
        assert not is_doubted(bench.hub)


async def test_a_revocation_is_not_taken_for_a_change_of_a_workspace(bench: Bench) -> None:
    async with bench.hub.connect(ANN, "one") as client:
        await read(client)
        bench.revoke(ANN)
        bench.change(ANN, WORKSPACE, "new")
        assert (await read(client)).data["name"] == "new"
    assert bench.table.asked == [None, {WORKSPACE}]


async def test_a_change_of_a_workspace_raises_no_doubt(bench: Bench) -> None:
    async with bench.hub.connect(ANN, "one") as client:
        await read(client)
        bench.change(ANN, WORKSPACE, "new")
        await read(client)
        assert not is_doubted(bench.hub)


async def test_messages_that_may_have_been_lost_make_everybody_doubted(bench: Bench) -> None:
    async with bench.hub.connect(ANN, "one") as ann, bench.hub.connect(BOB, "two") as bob:
        await read(ann)
        await read(bob)
        bench.subscription.lose()
        bench.revoke(ANN)
        bench.subscription.restore()
        assert await take(bench.hub) == {"one", "two"}


@pytest.mark.parametrize("payload", ["", "nonsense", '{"event": "resync"}'])
async def test_a_message_of_one_user_that_says_nothing_may_have_been_a_revocation(
    bench: Bench, payload: str
) -> None:
    async with bench.hub.connect(ANN, "one") as ann, bench.hub.connect(BOB, "two") as bob:
        await read(ann)
        await read(bob)
        bench.subscription.publish(str(ANN), payload)
        assert await take(bench.hub) == {"one"}


async def test_revocations_during_a_look_wait_for_the_next_one(bench: Bench) -> None:
    async with bench.hub.connect(ANN, "one") as ann, bench.hub.connect(BOB, "two") as bob:
        await read(ann)
        await read(bob)
        bench.revoke(ANN)
        assert await take(bench.hub) == {"one"}
        for user_id in (ANN, BOB, ANN):
            bench.revoke(user_id)
        assert await take(bench.hub) == {"one", "two"}
        assert not is_doubted(bench.hub)


async def test_nobody_is_woken_for_streams_without_credentials(bench: Bench) -> None:
    async with bench.hub.connect(ANN) as client:
        await read(client)
        bench.revoke(ANN)
        bench.subscription.broadcast("")
        assert not is_doubted(bench.hub)
