"""Fixtures for tests that need Redis or Temporal: one real server each for the whole run."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, ExitStack
from typing import TypeVar

import pytest
from redis.asyncio import Redis
from temporalio.client import Client

from codehub.adapters.redis.connection import create_client
from codehub.adapters.temporal.connection import connect
from codehub.adapters.temporal.search_attributes import ensure_search_attributes
from testkit.redis_server import RedisServer, running_redis
from testkit.temporal_server import TemporalServer, temporal_dev_server

T = TypeVar("T")

_REDIS = pytest.StashKey[RedisServer]()
_TEMPORAL = pytest.StashKey[TemporalServer]()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> RedisServer:
    return _once(pytestconfig, _REDIS, running_redis(tmp_path_factory.mktemp("redis")))


@pytest.fixture(scope="session")
def temporal_server(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> TemporalServer:
    return _once(pytestconfig, _TEMPORAL, temporal_dev_server(tmp_path_factory.mktemp("temporal")))


@pytest.fixture
async def redis_client(redis_server: RedisServer) -> AsyncIterator[Redis]:
    """A client of a Redis with nothing in it."""
    async with create_client(redis_server.url) as client:
        await client.flushall()
        yield client


@pytest.fixture(scope="session")
async def temporal_client(temporal_server: TemporalServer) -> Client:
    """A client of a namespace that has our search attributes."""
    client = await connect(temporal_server.address, "default")
    await ensure_search_attributes(client)
    return client


def _once(config: pytest.Config, key: pytest.StashKey[T], server: AbstractContextManager[T]) -> T:
    # Every module that imports these fixtures has its own copy of them; the server is one for all.
    if key not in config.stash:
        stack = ExitStack()
        config.stash[key] = stack.enter_context(server)
        config.add_cleanup(stack.close)
    return config.stash[key]
