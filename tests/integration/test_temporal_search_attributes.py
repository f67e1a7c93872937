"""Workflows can be found by their search attributes."""

import asyncio
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode, ServiceClient

from codehub import contracts
from codehub.adapters.temporal.connection import connect
from codehub.adapters.temporal.convergence import TemporalConvergence
from codehub.adapters.temporal.search_attributes import SearchAttributesUnusable, ensure_search_attributes
from codehub.domain.conditions import WorkspaceId
from testkit.temporal_server import TemporalServer, temporal_dev_server
from testkit.waiting import DEADLINE_SECONDS

KEYWORD = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD


class Refusing(ServiceClient):
    """A client of a server that refuses one call, like Temporal Cloud."""

    def __init__(self, real: ServiceClient, refused: str) -> None:
        super().__init__(real.config)
        self._real = real
        self._refused = refused

    @property
    def worker_service_client(self) -> Any:  # noqa: ANN401 (a private class of the library)
        return self._real.worker_service_client

    def update_rpc_metadata(self, metadata: Any) -> None:  # noqa: ANN401
        self._real.update_rpc_metadata(metadata)

    def update_api_key(self, api_key: str | None) -> None:
        self._real.update_api_key(api_key)

    async def _rpc_call(self, rpc: str, req: Any, resp_type: Any, **options: Any) -> Any:  # noqa: ANN401
        if rpc == self._refused:
            raise RPCError("not for you", RPCStatusCode.PERMISSION_DENIED, b"")
        return await self._real._rpc_call(rpc, req, resp_type, **options)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TemporalServer]:
    with temporal_dev_server(tmp_path) as running:
        yield running


@pytest.fixture
async def client(server: TemporalServer) -> Client:
    """A client of a server without CodeHub's search attributes."""
    return await connect(server.address, "default")


async def registered(client: Client) -> dict[str, int]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    return dict((await client.operator_service.list_search_attributes(request)).custom_attributes)


async def find(client: Client, query: str) -> list[str]:
    """Return the workflow ids of a query, as soon as there are any: visibility is delayed."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not (found := [run.id async for run in client.list_workflows(query)]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


async def test_several_workers_can_register_them_at_once_and_again(client: Client) -> None:
    assert await registered(client) == {}
    for _ in range(2):
        await asyncio.gather(*(ensure_search_attributes(client) for _ in range(5)))
        expected = dict.fromkeys(("WorkspaceId", "OwnerId", "Operation", "Phase"), KEYWORD)
        assert await registered(client) == expected


async def add(client: Client, **types: IndexedValueType.ValueType) -> None:
    request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=types)
    await client.operator_service.add_search_attributes(request)


async def test_an_attribute_of_another_type_is_explained(client: Client) -> None:
    await add(client, Operation=IndexedValueType.INDEXED_VALUE_TYPE_INT)
    with pytest.raises(SearchAttributesUnusable) as raised:
        await ensure_search_attributes(client)
    assert str(raised.value) == (
        "The Temporal namespace default has search attributes that are not of the type Keyword: Operation "
        "(Int); use another namespace (CODEHUB_TEMPORAL_NAMESPACE), or remove them there."
    )
    assert set(await registered(client)) == {"Operation"}


async def test_without_permission_to_add_the_error_says_what_to_add(
    client: Client, server: TemporalServer
) -> None:
    await add(client, Phase=KEYWORD)
    guarded = Client(Refusing(client.service_client, "add_search_attributes"))
    with pytest.raises(SearchAttributesUnusable) as raised:
        await ensure_search_attributes(guarded)
    words = str(raised.value)
    assert words.startswith(
        "The Temporal namespace default lacks the search attributes WorkspaceId, OwnerId, Operation of the "
        "type Keyword, and CodeHub cannot add them (not for you): have an operator run `temporal operator "
    )
    # The suggested command is sufficient.
    command = words.partition("`")[2].partition("`")[0].split()
    program = Path(sys.executable).with_name(command[0])
    run = await asyncio.create_subprocess_exec(program, *command[1:], "--address", server.address)
    assert await run.wait() == 0
    await ensure_search_attributes(guarded)


async def test_a_full_namespace_is_explained(client: Client) -> None:
    await add(client, **{f"Theirs{number}": KEYWORD for number in range(10)})
    with pytest.raises(SearchAttributesUnusable, match="CodeHub cannot add them"):
        await ensure_search_attributes(client)


async def test_without_permission_to_list_it_continues(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await ensure_search_attributes(Client(Refusing(client.service_client, "list_search_attributes")))
    assert "cannot check whether Temporal has the search attributes WorkspaceId, OwnerId" in caplog.text


async def test_a_workflow_is_found_by_its_workspace_and_its_owner(client: Client) -> None:
    await ensure_search_attributes(client)
    convergence = TemporalConvergence(client, "nobody works here")
    one, other = (WorkspaceId(str(uuid.uuid4())) for _ in range(2))
    await convergence.wake(other, "bob")
    await convergence.wake(one, "ann")
    assert await find(client, f"WorkspaceId = '{one}'") == [contracts.workspace_workflow_id(one)]
    assert await find(client, "OwnerId = 'bob'") == [contracts.workspace_workflow_id(other)]
