"""The control plane on a Temporal server that suggests continue-as-new very early."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from codehub.adapters.temporal.connection import connect
from codehub.adapters.temporal.search_attributes import ensure_search_attributes
from codehub.db.session import Database
from testkit.temporal_server import temporal_dev_server
from tests.workflows.harness import ControlPlane, running_control_plane

SUGGEST_AFTER = "limit.historyCount.suggestContinueAsNew=20"


@pytest.fixture
async def long_run_plane(
    tmp_path_factory: pytest.TempPathFactory, database: Database, redis_client: Redis
) -> AsyncIterator[ControlPlane]:
    with temporal_dev_server(tmp_path_factory.mktemp("temporal"), None, SUGGEST_AFTER) as server:
        client = await connect(server.address, "default")
        await ensure_search_attributes(client)
        async with running_control_plane(client, database, redis_client) as plane:
            yield plane
