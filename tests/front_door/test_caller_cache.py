"""Who is asking: believed for seconds, confirmed together, forgotten when it no longer holds."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import update

from codehub.db.models import User
from codehub.db.session import create_engine
from codehub.services.identity import SignedIn, sign_out
from proxy import caller_cache as callers_module
from proxy.caller_cache import FRESH_SECONDS, MAX_SECONDS, CallerCache
from proxy.request_kind import Credentials
from tests.front_door.held_database import Clock, HeldDatabase, questions
from tests.identities import add, enter


class Harness:
    """Callers, and everything that they are asked of."""

    def __init__(self, database: HeldDatabase) -> None:
        self.database = database
        self.clock = Clock()
        self.callers = CallerCache(database, self.clock)

    async def enter(self, username: str = "ann") -> tuple[Credentials, SignedIn]:
        entered = await enter(self.database, username, now=datetime.now(UTC))
        return Credentials(None, entered.token), entered

    async def set_disabled(self, user_id: UUID, moment: datetime | None) -> None:
        async with self.database.engine.begin() as connection:
            await connection.execute(update(User).where(User.id == user_id).values(disabled_at=moment))


@pytest.fixture
async def harness(database_url: str) -> AsyncIterator[Harness]:
    async with HeldDatabase(create_engine(database_url)) as database:
        await add(database)
        yield Harness(database)


async def test_who_was_found_is_believed_for_seconds(harness: Harness) -> None:
    shown, entered = await harness.enter()
    known = await harness.callers.find(shown)
    assert known is not None
    assert (known.credential, known.user_id) == (
        str(entered.caller.credential_id),
        str(entered.caller.user_id),
    )
    with questions(harness.database) as asked:
        harness.clock.now += FRESH_SECONDS
        assert await harness.callers.find(shown) is known
        assert asked == []
        harness.clock.now += 0.001
        assert harness.callers.get(shown) is None
        assert await harness.callers.find(shown) is not None
        assert asked


async def test_strangers_are_not_remembered(harness: Harness) -> None:
    stranger = Credentials(None, "guessed")
    for _ in range(2):
        with questions(harness.database) as asked:
            assert await harness.callers.find(stranger) is None
            assert asked
    with questions(harness.database) as asked:
        assert await harness.callers.find(Credentials(None, None)) is None
        assert asked == []


async def test_one_whose_session_ended_is_a_stranger_when_asked_about_again(harness: Harness) -> None:
    shown, entered = await harness.enter()
    await harness.callers.find(shown)
    await sign_out(harness.database, entered.caller.credential_id, now=datetime.now(UTC))
    harness.clock.now += FRESH_SECONDS + 1
    assert await harness.callers.find(shown) is None
    assert harness.callers.users == set()


async def test_all_are_confirmed_with_one_question(harness: Harness) -> None:
    shown = [(await harness.enter())[0] for _ in range(3)]
    for each in shown:
        await harness.callers.find(each)
    harness.clock.now += FRESH_SECONDS
    with questions(harness.database) as asked:
        assert await harness.callers.revalidate(()) == set()
        assert len(asked) == 1
    harness.clock.now += FRESH_SECONDS
    assert all(harness.callers.get(each) for each in shown)


async def test_those_that_no_longer_hold_are_forgotten_and_named(harness: Harness) -> None:
    (stays, _), (goes, gone) = await harness.enter(), await harness.enter()
    _, held = await harness.enter()
    for each in (stays, goes):
        await harness.callers.find(each)
    ids = [entered.caller.credential_id for entered in (gone, held)]
    for credential_id in ids:
        await sign_out(harness.database, credential_id, now=datetime.now(UTC))
    # Of a connection that is open the credential may have been forgotten long ago.
    assert await harness.callers.revalidate({str(ids[1])}) == set(map(str, ids))
    assert harness.callers.get(goes) is None
    assert harness.callers.get(stays) is not None


async def test_nobody_is_believed_for_long_without_being_looked_up(harness: Harness) -> None:
    shown, entered = await harness.enter()
    await harness.callers.find(shown)
    for _ in range(int(MAX_SECONDS / FRESH_SECONDS)):
        harness.clock.now += FRESH_SECONDS
        await harness.callers.revalidate(())
    assert harness.callers.users == {str(entered.caller.user_id)}
    harness.clock.now += 0.001
    await harness.callers.revalidate(())
    assert harness.callers.get(shown) is None
    assert harness.callers.users == set()


async def test_one_found_after_the_question_is_not_meant_by_the_answer(harness: Harness) -> None:
    shown, entered = await harness.enter()
    await harness.callers.find(shown)
    await harness.set_disabled(entered.caller.user_id, datetime.now(UTC))
    harness.database.holding = True
    confirming = asyncio.create_task(harness.callers.revalidate(()))
    await harness.database.wait_for(1)
    harness.database.holding = False
    await harness.set_disabled(entered.caller.user_id, None)
    harness.clock.now += FRESH_SECONDS + 1
    known = await harness.callers.find(shown)
    assert known is not None
    harness.database.on_their_way[0].set()
    assert await confirming == {known.credential}
    assert harness.callers.get(shown) is known


async def test_an_answer_is_as_old_as_its_question(harness: Harness) -> None:
    shown, _ = await harness.enter()
    harness.database.holding = True
    finding = asyncio.create_task(harness.callers.find(shown))
    await harness.database.wait_for(1)
    harness.clock.now += FRESH_SECONDS + 1
    harness.database.on_their_way[0].set()
    assert await finding is not None
    assert harness.callers.get(shown) is None


async def test_no_more_are_remembered_than_there_is_room_for(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers_module, "CAPACITY", 2)
    shown = [(await harness.enter())[0] for _ in range(4)]
    for each in shown:
        await harness.callers.find(each)
        assert harness.callers.get(each) is not None
    assert sum(harness.callers.get(each) is not None for each in shown) <= 2
