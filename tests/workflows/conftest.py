"""Fixtures for the workflow tests: a server that skips time, and the control plane on it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis
from temporalio.testing import WorkflowEnvironment

from codehub.db.session import Database
from tests.workflows.harness import ControlPlane, running_control_plane, skipping_server


@pytest.fixture(scope="module")
async def skipping() -> AsyncIterator[WorkflowEnvironment]:
    """A server whose clock is global; these tests run one at a time."""
    async with skipping_server() as environment:
        yield environment


@pytest.fixture
async def plane(
    skipping: WorkflowEnvironment, database: Database, redis_client: Redis
) -> AsyncIterator[ControlPlane]:
    async with running_control_plane(skipping.client, database, redis_client) as plane:
        yield plane


@pytest.fixture
def own_time(skipping: WorkflowEnvironment) -> Iterator[None]:
    """Advance time only when the test says so. By itself, the server may skip to any forgotten timer."""
    with skipping.auto_time_skipping_disabled():
        yield
