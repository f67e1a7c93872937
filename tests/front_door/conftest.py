"""Fixtures for the tests of the front door."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testkit.redis_server import RedisServer
from testkit.seaweed import S3Server
from testkit.temporal_server import TemporalServer
from tests.api.harness import environment_of
from tests.front_door.harness import FrontDoorHarness, Person, open_front_door


@pytest.fixture
def proxy_environment(
    tmp_path: Path,
    database_url: str,
    redis_server: RedisServer,
    temporal_server: TemporalServer,
    s3_server: S3Server,
) -> dict[str, str]:
    return environment_of(tmp_path, database_url, redis_server, temporal_server, s3_server)


@pytest.fixture
async def harness(proxy_environment: dict[str, str]) -> AsyncIterator[FrontDoorHarness]:
    async with open_front_door(proxy_environment) as opened:
        yield opened


@pytest.fixture
async def ann(harness: FrontDoorHarness) -> Person:
    return await harness.person()


@pytest.fixture
async def bob(harness: FrontDoorHarness) -> Person:
    return await harness.person()
