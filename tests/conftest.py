"""Fixtures for all tests: real servers, one each per run, that start when the first test needs them."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from codehub.db.session import Database, create_engine
from migrations import runner
from testkit import postgres
from testkit.redis_server import RedisServer, running_redis
from testkit.temporal_server import TemporalServer, temporal_dev_server

# Fixtures import what only they need, so that unit tests start a second earlier.
# ruff: noqa: PLC0415
if TYPE_CHECKING:
    from redis.asyncio import Redis
    from temporalio.client import Client

    from testkit.deployment import Servers
    from testkit.seaweed import S3Server
    from tests.buckets import Bucket


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of skipped tests for each reason."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    with postgres.running_server() as server:
        yield server


@pytest.fixture(scope="session")
async def migrated_template(postgres_server: postgres.Server) -> AsyncIterator[str]:
    """Return the name of a database with the current schema."""
    async with postgres.new_database(postgres_server) as url:
        await runner.upgrade(url)
        yield url.partition("@/")[2].partition("?")[0]


@pytest.fixture
async def empty_database_url(postgres_server: postgres.Server) -> AsyncIterator[str]:
    """Return the URL of a database without tables, for tests of migrations."""
    async with postgres.new_database(postgres_server) as url:
        yield url


@pytest.fixture
async def database_url(postgres_server: postgres.Server, migrated_template: str) -> AsyncIterator[str]:
    """Return the URL of a fresh database with the current schema."""
    async with postgres.new_database(postgres_server, migrated_template) as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(create_engine(database_url, pool_size=20)) as opened:
        yield opened


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
async def redis_client(redis_server: RedisServer) -> "AsyncIterator[Redis]":
    """Return a client of an empty Redis."""
    from codehub.adapters.redis.connection import create_client

    async with create_client(redis_server.url) as client:
        await client.flushall()
        yield client


@pytest.fixture(scope="session")
def temporal_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with temporal_dev_server(tmp_path_factory.mktemp("temporal")) as server:
        yield server


@pytest.fixture(scope="session")
async def temporal_client(temporal_server: TemporalServer) -> "Client":
    """Return a client of a namespace that has our search attributes."""
    from codehub.adapters.temporal.connection import connect
    from codehub.adapters.temporal.search_attributes import ensure_search_attributes

    client = await connect(temporal_server.address, "default")
    await ensure_search_attributes(client)
    return client


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[S3Server]":
    from testkit.seaweed import seaweed

    with seaweed(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture
async def bucket(s3_server: "S3Server") -> "AsyncIterator[Bucket]":
    from tests.buckets import open_bucket

    async with open_bucket(s3_server) as opened:
        yield opened


@pytest.fixture(scope="session")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> "AsyncIterator[Servers]":
    """Start PostgreSQL, Redis, S3 and Temporal once; each test opens its own deployment on them."""
    from testkit.deployment import running_servers

    async with running_servers(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """Return a volume with old content, beside a directory that a job must not touch."""
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "old").write_text("old")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "volume"
