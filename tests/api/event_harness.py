"""Fixtures for tests of live events: APIs, relays, browsers and programs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from sqlalchemy import text

from codehub.bootstrap import database_url_of, open_bus
from testkit.waiting import until
from tests.api.harness import ApiHarness, Person
from tests.api.process import ApiProcess, calling, running_api
from worker.relay import RELAY_LOCK, EventRelay, RelayTiming

__all__ = ["harness"]

QUICK_RELAY = RelayTiming(election=0.05, first_delay=0.05)


@pytest.fixture
def harness(shared_harness: ApiHarness) -> ApiHarness:
    return shared_harness


@pytest.fixture
def api(served: ApiProcess) -> ApiProcess:
    """One process for all tests that do not stop it; each test creates its own users."""
    return served


@pytest.fixture
async def ending_api(shared_environment: dict[str, str]) -> AsyncIterator[ApiProcess]:
    """A process that the test may stop."""
    async with running_api(shared_environment) as process:
        yield process


@pytest.fixture
async def impatient_api(shared_environment: dict[str, str]) -> AsyncIterator[ApiProcess]:
    """An API that waits only a second for open requests when it stops."""
    async with running_api({**shared_environment, "CODEHUB_API_SHUTDOWN_GRACE_SECONDS": "1"}) as process:
        yield process


@pytest.fixture
async def relay(harness: ApiHarness) -> AsyncIterator[None]:
    async with relaying(harness):
        yield


@asynccontextmanager
async def relaying(harness: ApiHarness) -> AsyncIterator[None]:
    """Run a relay that is elected as soon as there is no other."""
    async with open_bus(harness.settings) as bus:
        task = asyncio.create_task(EventRelay(database_url_of(harness.settings), bus, QUICK_RELAY).run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def until_elected(harness: ApiHarness) -> None:
    # The lock's key has 64 bits; the catalog shows it in two halves.
    query = text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
        "AND ((classid::bigint << 32) | objid::bigint) = :lock "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )

    async def elected() -> bool:
        async with harness.context.database.transaction() as session:
            return bool(await session.scalar(query, {"lock": RELAY_LOCK}))

    await until(elected, "a relay is elected")


@asynccontextmanager
async def program(harness: ApiHarness, person: Person, api: ApiProcess) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a new token of this person."""
    with_token, _ = await harness.token_client(person)
    async with calling(api.base_url, authorization=with_token.headers["authorization"]) as client:
        yield client


@asynccontextmanager
async def browser(person: Person, api: ApiProcess) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the session of this person."""
    async with calling(api.base_url, **{"x-csrf-token": person.client.headers["x-csrf-token"]}) as client:
        client.cookies.update(dict(person.client.cookies))
        yield client


async def metric(client: httpx.AsyncClient, name: str) -> float:
    lines = (await client.get("/metrics")).text.splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"codehub_{name} "))


async def until_clients(client: httpx.AsyncClient, count: int) -> None:
    """Wait until this many streams are open: the process may not have noticed yet that others have closed."""

    async def so_many() -> bool:
        return await metric(client, "live_clients") == count

    await until(so_many, f"{count} streams are open")
