"""Fixtures: one CodeHub for all tests of the command line, new users for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from testkit import postgres
from testkit.redis_server import RedisServer
from testkit.seaweed import S3Server
from testkit.temporal_server import TemporalServer
from tests.api.harness import environment_of
from tests.cli.harness import CliHarness, CliUser, open_cli_harness


@pytest.fixture(scope="package")
async def harness(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: postgres.Server,
    migrated_template: str,
    redis_server: RedisServer,
    temporal_server: TemporalServer,
    temporal_client: Client,
    s3_server: S3Server,
) -> AsyncIterator[CliHarness]:
    async with postgres.new_database(postgres_server, migrated_template) as database_url:
        data_dir = tmp_path_factory.mktemp("codehub")
        environment = environment_of(data_dir, database_url, redis_server, temporal_server, s3_server)
        async with open_cli_harness(environment) as opened:
            yield opened


@pytest.fixture
async def ann(harness: CliHarness, tmp_path: Path) -> CliUser:
    return await harness.user(tmp_path / "ann")


@pytest.fixture
async def admin(harness: CliHarness, tmp_path: Path) -> CliUser:
    return await harness.user(tmp_path / "admin", admin=True)
