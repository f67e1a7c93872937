"""Cached callers: fresh for seconds, validated together, forgotten when they are no longer valid."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import update

from codehub.db.models import User
from codehub.db.session import create_engine
from codehub.services.identity import SignedIn, sign_out
from proxy import caller_cache
from proxy.caller_cache import FRESH_SECONDS, MAX_SECONDS, CallerCache
from proxy.request_kind import Credentials
from testkit.rows import BY
from tests.front_door.held_database import Clock, HeldDatabase, recorded_statements
from tests.identities import add, enter


class Harness:
    """A caller cache with its database and clock."""

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


async def test_a_caller_is_cached_for_seconds(harness: Harness) -> None:
    credentials, entered = await harness.enter()
    cached = await harness.callers.find(credentials)
    assert cached is not None
    assert (cached.credential, cached.user_id) == (
        str(entered.caller.credential_id),
        str(entered.caller.user_id),
    )
    with recorded_statements(harness.database) as statements:
        harness.clock.now += FRESH_SECONDS
        assert await harness.callers.find(credentials) is cached
        assert statements == []
        harness.clock.now += 0.001
        assert harness.callers.get(credentials) is None
        assert await harness.callers.find(credentials) is not None
        assert statements


async def test_invalid_credentials_are_not_cached(harness: Harness) -> None:
    invalid = Credentials(None, "guessed")
    for _ in range(2):
        with recorded_statements(harness.database) as statements:
            assert await harness.callers.find(invalid) is None
            assert statements
    with recorded_statements(harness.database) as statements:
        assert await harness.callers.find(Credentials(None, None)) is None
        assert statements == []


async def test_a_caller_whose_session_ended_is_refused_after_that(harness: Harness) -> None:
    credentials, entered = await harness.enter()
    await harness.callers.find(credentials)
    await sign_out(harness.database, entered.caller.credential_id, by=BY, now=datetime.now(UTC))
    harness.clock.now += FRESH_SECONDS + 1
    assert await harness.callers.find(credentials) is None
    assert harness.callers.users == set()


async def test_all_callers_are_validated_with_one_query(harness: Harness) -> None:
    credentials = [(await harness.enter())[0] for _ in range(3)]
    for each in credentials:
        await harness.callers.find(each)
    harness.clock.now += FRESH_SECONDS
    with recorded_statements(harness.database) as statements:
        assert await harness.callers.revalidate(()) == set()
        assert len(statements) == 1
    harness.clock.now += FRESH_SECONDS
    assert all(harness.callers.get(each) for each in credentials)


async def test_invalid_callers_are_forgotten_and_returned(harness: Harness) -> None:
    (stays, _), (goes, gone) = await harness.enter(), await harness.enter()
    _, held = await harness.enter()
    for each in (stays, goes):
        await harness.callers.find(each)
    ids = [entered.caller.credential_id for entered in (gone, held)]
    for credential_id in ids:
        await sign_out(harness.database, credential_id, by=BY, now=datetime.now(UTC))
    # An open connection may use a credential that is no longer cached.
    assert await harness.callers.revalidate({str(ids[1])}) == set(map(str, ids))
    assert harness.callers.get(goes) is None
    assert harness.callers.get(stays) is not None


async def test_a_caller_is_looked_up_again_after_a_minute(harness: Harness) -> None:
    credentials, entered = await harness.enter()
    await harness.callers.find(credentials)
    for _ in range(int(MAX_SECONDS / FRESH_SECONDS)):
        harness.clock.now += FRESH_SECONDS
        await harness.callers.revalidate(())
    assert harness.callers.users == {str(entered.caller.user_id)}
    harness.clock.now += 0.001
    await harness.callers.revalidate(())
    assert harness.callers.get(credentials) is None
    assert harness.callers.users == set()


async def test_a_caller_found_after_the_query_began_stays_cached(harness: Harness) -> None:
    credentials, entered = await harness.enter()
    await harness.callers.find(credentials)
    await harness.set_disabled(entered.caller.user_id, datetime.now(UTC))
    harness.database.holding = True
    validating = asyncio.create_task(harness.callers.revalidate(()))
    await harness.database.wait_until_held(1)
    harness.database.holding = False
    await harness.set_disabled(entered.caller.user_id, None)
    harness.clock.now += FRESH_SECONDS + 1
    cached = await harness.callers.find(credentials)
    assert cached is not None
    harness.database.held[0].set()
    assert await validating == {cached.credential}
    assert harness.callers.get(credentials) is cached


async def test_a_result_is_as_old_as_its_query(harness: Harness) -> None:
    credentials, _ = await harness.enter()
    harness.database.holding = True
    finding = asyncio.create_task(harness.callers.find(credentials))
    await harness.database.wait_until_held(1)
    harness.clock.now += FRESH_SECONDS + 1
    harness.database.held[0].set()
    assert await finding is not None
    assert harness.callers.get(credentials) is None


async def test_the_cache_has_a_limit(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_cache, "CAPACITY", 2)
    credentials = [(await harness.enter())[0] for _ in range(4)]
    for each in credentials:
        await harness.callers.find(each)
        assert harness.callers.get(each) is not None
    assert sum(harness.callers.get(each) is not None for each in credentials) <= 2
