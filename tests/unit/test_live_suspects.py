"""Which messages make which credentials suspect."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from api.live.hub import LiveHub
from testkit.waiting import DEADLINE_SECONDS
from tests.live_harness import Harness, read, running

ANN, BOB = uuid4(), uuid4()
WORKSPACE = str(uuid4())


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    async with running() as harness:
        yield harness


async def take(hub: LiveHub) -> set[str]:
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await hub.suspects.take()


def has_suspects(hub: LiveHub) -> bool:
    """Return whether there are suspects, without waiting."""
    taking = hub.suspects.take()
    try:
        taking.send(None)
    except StopIteration:
        return True
    taking.close()
    return False


async def test_a_revocation_makes_the_credentials_of_that_user_suspect(harness: Harness) -> None:
    async with (
        harness.hub.connect(ANN, "one") as ann,
        harness.hub.connect(ANN, "two") as other,
        harness.hub.connect(BOB, "three") as bob,
    ):
        for client in (ann, other, bob):
            await read(client)
        harness.revoke(ANN)
        assert await take(harness.hub) == {"one", "two"}
        assert not has_suspects(harness.hub)


async def test_a_revocation_is_not_a_change_of_a_workspace(harness: Harness) -> None:
    async with harness.hub.connect(ANN, "one") as client:
        await read(client)
        harness.revoke(ANN)
        harness.change(ANN, WORKSPACE, "new")
        assert (await read(client)).data["name"] == "new"
    assert harness.table.reads == [None, {WORKSPACE}]


async def test_a_change_of_a_workspace_makes_nothing_suspect(harness: Harness) -> None:
    async with harness.hub.connect(ANN, "one") as client:
        await read(client)
        harness.change(ANN, WORKSPACE, "new")
        await read(client)
        assert not has_suspects(harness.hub)


async def test_messages_that_may_have_been_lost_make_all_credentials_suspect(harness: Harness) -> None:
    async with harness.hub.connect(ANN, "one") as ann, harness.hub.connect(BOB, "two") as bob:
        await read(ann)
        await read(bob)
        harness.subscription.lose()
        harness.revoke(ANN)
        harness.subscription.restore()
        assert await take(harness.hub) == {"one", "two"}


@pytest.mark.parametrize("payload", ["", "nonsense", '{"event": "resync"}'])
async def test_an_unreadable_message_may_have_been_a_revocation(harness: Harness, payload: str) -> None:
    async with harness.hub.connect(ANN, "one") as ann, harness.hub.connect(BOB, "two") as bob:
        await read(ann)
        await read(bob)
        harness.subscription.publish(str(ANN), payload)
        assert await take(harness.hub) == {"one"}


async def test_revocations_during_a_check_wait_for_the_next_one(harness: Harness) -> None:
    async with harness.hub.connect(ANN, "one") as ann, harness.hub.connect(BOB, "two") as bob:
        await read(ann)
        await read(bob)
        harness.revoke(ANN)
        assert await take(harness.hub) == {"one"}
        for user_id in (ANN, BOB, ANN):
            harness.revoke(user_id)
        assert await take(harness.hub) == {"one", "two"}
        assert not has_suspects(harness.hub)


async def test_streams_without_credentials_are_never_suspect(harness: Harness) -> None:
    async with harness.hub.connect(ANN) as client:
        await read(client)
        harness.revoke(ANN)
        harness.subscription.broadcast("")
        assert not has_suspects(harness.hub)
