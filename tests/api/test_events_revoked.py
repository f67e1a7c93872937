"""A revocation by one process ends the streams of another at once, without waiting for the periodic check."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import select, update

from api.live import revocation
from api.live.client import LiveClient
from codehub.db.models import Session, User
from tests.api.event_harness import browser, harness, relaying
from tests.api.harness import ApiHarness, Person, open_harness
from tests.api.process import ApiProcess
from tests.live_harness import parse, read, rest

__all__ = ["harness"]

NEVER = 100_000.0


@pytest.fixture
async def elsewhere(
    shared_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ApiHarness]:
    """Another API on the same database that learns of revocations only through events."""
    monkeypatch.setattr(revocation, "PERIOD_SECONDS", NEVER)
    async with open_harness(shared_environment) as opened:
        yield opened


@asynccontextmanager
async def stream_of(person: Person, there: ApiHarness) -> AsyncIterator[LiveClient]:
    """Open a stream for this person's session, as the route does."""
    async with there.context.database.transaction() as session:
        session_id = await session.scalar(select(Session.id).where(Session.user_id == person.user_id))
    async with there.context.hub.connect(person.user_id, str(session_id)) as client:
        yield client


async def names_until_end(stream: LiveClient) -> set[str]:
    """Return the names of all further events; heartbeats may come at any time."""
    return {parse(each).name for each in await rest(stream)}


async def test_signing_out_ends_the_stream_that_another_process_holds(
    harness: ApiHarness, api: ApiProcess, relay: None, elsewhere: ApiHarness
) -> None:
    ada, bob = await harness.person(), await harness.person()
    async with (
        browser(ada, api) as client,
        stream_of(ada, elsewhere) as stream,
        stream_of(bob, elsewhere) as stays,
    ):
        await read(stream)
        await read(stays)
        assert (await client.post("/api/v1/logout")).status_code == 204
        assert await names_until_end(stream) <= {"heartbeat"}
        assert not stays.ended


async def test_disabling_a_user_in_the_database_ends_the_stream(
    harness: ApiHarness, relay: None, elsewhere: ApiHarness
) -> None:
    ada = await harness.person()
    async with stream_of(ada, elsewhere) as stream:
        await read(stream)
        async with harness.context.database.transaction() as session:
            disabling = update(User).where(User.id == ada.user_id)
            await session.execute(disabling.values(disabled_at=harness.context.now()))
        # The relay begins meanwhile, and a subscriber that may have missed something gets another snapshot.
        assert await names_until_end(stream) <= {"heartbeat", "snapshot"}


async def test_a_revocation_while_there_was_no_relay_is_found_afterwards(
    harness: ApiHarness, api: ApiProcess, elsewhere: ApiHarness
) -> None:
    ada = await harness.person()
    async with browser(ada, api) as client, stream_of(ada, elsewhere) as stream:
        await read(stream)
        assert (await client.post("/api/v1/logout")).status_code == 204
        assert not stream.ended
        async with relaying(harness):
            assert await names_until_end(stream) <= {"heartbeat"}
