"""Fixtures for tests of the API."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from testkit.fake_world import FakeWorld
from testkit.redis_server import RedisServer
from testkit.seaweed import S3Server
from testkit.temporal_server import TemporalServer
from tests.api.event_harness import api, ending_api, impatient_api, relay
from tests.api.harness import ApiHarness, environment_of, open_harness, running_worker
from tests.api.module_fixtures import served, shared_environment, shared_harness
from tests.buckets import Bucket

__all__ = [
    "api",
    "ending_api",
    "impatient_api",
    "relay",
    "served",
    "shared_environment",
    "shared_harness",
]


@pytest.fixture
def api_environment(
    tmp_path: Path,
    database_url: str,
    redis_server: RedisServer,
    temporal_server: TemporalServer,
    bucket: Bucket,
    s3_server: S3Server,
) -> dict[str, str]:
    """Settings of an API on a new database and an empty bucket."""
    return environment_of(tmp_path, database_url, redis_server, temporal_server, s3_server)


@pytest.fixture
async def harness(api_environment: dict[str, str]) -> AsyncIterator[ApiHarness]:
    """An API without a worker: requests are stored but not carried out."""
    async with open_harness(api_environment) as opened:
        yield opened


@pytest.fixture
async def world(harness: ApiHarness, temporal_client: Client) -> AsyncIterator[FakeWorld]:
    """The fake providers of a worker that carries out what the API requests."""
    async with running_worker(harness) as world:
        yield world
