"""Fixtures that the tests of one module share: a database, an API in this process, an API process."""

from collections.abc import AsyncIterator

import pytest

from api.routers import pages
from api.security.guard import GuardedRoute
from codehub.bootstrap import prepare_stores
from codehub.settings import load_settings
from testkit import postgres
from testkit.redis_server import RedisServer
from testkit.seaweed import S3Server
from testkit.temporal_server import TemporalServer
from tests.api.harness import ApiHarness, environment_of, open_harness
from tests.api.process import ApiProcess, running_api

# The pages of the dashboard, which are not in the OpenAPI document.
PAGE_ROUTES = frozenset(
    ("GET", route.path_format) for route in pages.router.routes if isinstance(route, GuardedRoute)
)


@pytest.fixture(scope="module")
async def shared_environment(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: postgres.Server,
    migrated_template: str,
    redis_server: RedisServer,
    temporal_server: TemporalServer,
    s3_server: S3Server,
) -> AsyncIterator[dict[str, str]]:
    """Settings of an API on a database for this module."""
    async with postgres.new_database(postgres_server, migrated_template) as database_url:
        data_dir = tmp_path_factory.mktemp("api")
        environment = environment_of(data_dir, database_url, redis_server, temporal_server, s3_server)
        await prepare_stores(load_settings(environment))
        yield environment


@pytest.fixture(scope="module")
async def shared_harness(shared_environment: dict[str, str]) -> AsyncIterator[ApiHarness]:
    """An API with cheap password hashes."""
    async with open_harness(shared_environment) as opened:
        yield opened.with_cheap_passwords()


@pytest.fixture(scope="module")
async def served(shared_environment: dict[str, str]) -> AsyncIterator[ApiProcess]:
    """`python -m api` on the module's database."""
    async with running_api(shared_environment) as running:
        yield running


def server_errors_of(api: ApiProcess) -> list[str]:
    """Return the log lines of unexpected errors."""
    return [
        line for line in api.log.read_text().splitlines() if "unexpected error" in line or "Traceback" in line
    ]
