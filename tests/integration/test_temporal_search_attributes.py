"""Workflows can be found by what they are about."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client

from codehub import contracts
from codehub.adapters.temporal.connection import connect
from codehub.adapters.temporal.convergence import TemporalConvergence
from codehub.adapters.temporal.search_attributes import ensure_search_attributes
from codehub.domain.conditions import WorkspaceId
from tests.temporal_server import temporal_dev_server
from tests.waiting import DEADLINE_SECONDS

KEYWORD = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a server that has never heard of us."""
    with temporal_dev_server(tmp_path) as server:
        yield await connect(server.address, "default")


async def registered(client: Client) -> dict[str, int]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    return dict((await client.operator_service.list_search_attributes(request)).custom_attributes)


async def find(client: Client, query: str) -> list[str]:
    """Workflow ids, as soon as there are any: the list trails behind."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not (found := [run.id async for run in client.list_workflows(query)]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


async def test_several_workers_may_register_them_at_once_and_again(client: Client) -> None:
    assert await registered(client) == {}
    for _ in range(2):
        await asyncio.gather(*(ensure_search_attributes(client) for _ in range(5)))
        expected = dict.fromkeys(("WorkspaceId", "OwnerId", "Operation", "Phase"), KEYWORD)
        assert await registered(client) == expected


async def test_a_workflow_is_found_by_its_workspace_and_its_owner(client: Client) -> None:
    await ensure_search_attributes(client)
    convergence = TemporalConvergence(client, "nobody works here")
    one, other = (WorkspaceId(str(uuid.uuid4())) for _ in range(2))
    await convergence.wake(other, "bob")
    await convergence.wake(one, "ann")
    assert await find(client, f"WorkspaceId = '{one}'") == [contracts.workspace_workflow_id(one)]
    assert await find(client, "OwnerId = 'bob'") == [contracts.workspace_workflow_id(other)]
