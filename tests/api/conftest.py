"""Fixtures for tests of the API."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testkit.redis_server import RedisServer
from testkit.seaweed import S3Server
from testkit.temporal_server import TemporalServer
from tests.api.harness import ApiHarness, environment_of, open_harness
from tests.buckets import Bucket


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
