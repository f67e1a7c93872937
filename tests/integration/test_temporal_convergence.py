"""A wake starts the workflow of a workspace or signals its run, and never raises for an outage."""

import asyncio
import socket
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from codehub import contracts
from codehub.adapters.temporal.connection import connect
from codehub.adapters.temporal.convergence import TemporalConvergence
from codehub.adapters.temporal.search_attributes import OWNER_ID, WORKSPACE_ID, ensure_search_attributes
from codehub.domain.conditions import WorkspaceId
from testkit.processes import free_port
from testkit.temporal_server import TemporalServer, temporal_dev_server
from testkit.waiting import DEADLINE_SECONDS

OWNER = "owner"


@dataclass(frozen=True)
class Seen:
    workspace_id: str
    owner_id: str
    wakes: int


@workflow.defn(name=contracts.WORKSPACE_WORKFLOW, sandboxed=False)
class CountingWorkflow:
    """A fake workflow that counts wakes until it may finish."""

    def __init__(self) -> None:
        self.wakes = 0
        self.finished = False

    @workflow.signal(name=contracts.WAKE_SIGNAL)
    def wake(self) -> None:
        self.wakes += 1

    @workflow.signal
    def finish(self) -> None:
        self.finished = True

    @workflow.run
    async def run(self, request: contracts.ConvergeRequest) -> Seen:
        await workflow.wait_condition(lambda: self.finished)
        return Seen(request.workspace_id, request.owner_id, self.wakes)


@pytest.fixture
def workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid.uuid4()))


@pytest.fixture
async def convergence(temporal_client: Client) -> AsyncIterator[TemporalConvergence]:
    task_queue = str(uuid.uuid4())
    async with Worker(temporal_client, task_queue=task_queue, workflows=[CountingWorkflow]):
        yield TemporalConvergence(temporal_client, task_queue)


def run_of(client: Client, workspace_id: WorkspaceId) -> WorkflowHandle[CountingWorkflow, Seen]:
    return client.get_workflow_handle_for(CountingWorkflow.run, contracts.workspace_workflow_id(workspace_id))


async def finish(client: Client, workspace_id: WorkspaceId) -> Seen:
    run = run_of(client, workspace_id)
    await run.signal(CountingWorkflow.finish)
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await run.result()


async def test_a_wake_starts_the_workflow_of_the_workspace(
    temporal_client: Client, convergence: TemporalConvergence, workspace_id: WorkspaceId
) -> None:
    await convergence.wake(workspace_id, OWNER)
    assert await finish(temporal_client, workspace_id) == Seen(workspace_id, OWNER, wakes=1)


async def test_fifty_wakes_at_once_signal_one_run(
    temporal_client: Client, convergence: TemporalConvergence, workspace_id: WorkspaceId
) -> None:
    await asyncio.gather(*(convergence.wake(workspace_id, OWNER) for _ in range(50)))
    assert await finish(temporal_client, workspace_id) == Seen(workspace_id, OWNER, wakes=50)


async def test_a_wake_after_the_run_has_completed_starts_another(
    temporal_client: Client, convergence: TemporalConvergence, workspace_id: WorkspaceId
) -> None:
    await convergence.wake(workspace_id, OWNER)
    await finish(temporal_client, workspace_id)
    await convergence.wake(workspace_id, OWNER)
    assert await finish(temporal_client, workspace_id) == Seen(workspace_id, OWNER, wakes=1)


async def test_the_run_has_a_readable_summary_and_no_timeout(
    temporal_client: Client, convergence: TemporalConvergence, workspace_id: WorkspaceId
) -> None:
    await convergence.wake(workspace_id, OWNER)
    run = await run_of(temporal_client, workspace_id).describe()
    assert run.typed_search_attributes[WORKSPACE_ID] == workspace_id
    assert run.typed_search_attributes[OWNER_ID] == OWNER
    assert workspace_id in (await run.static_summary() or "")
    timeouts = run.raw_description.execution_config
    assert timeouts.workflow_execution_timeout.ToTimedelta().total_seconds() == 0
    assert timeouts.workflow_run_timeout.ToTimedelta().total_seconds() == 0
    await finish(temporal_client, workspace_id)


async def test_a_wake_without_temporal_returns_and_is_logged(
    workspace_id: WorkspaceId, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(f"127.0.0.1:{free_port()}", "default", lazy=True)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await TemporalConvergence(client, "any").wake(workspace_id, OWNER)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert workspace_id in record.getMessage()


async def test_a_wake_does_not_wait_long_for_a_server_that_never_responds(
    workspace_id: WorkspaceId, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = await connect(f"127.0.0.1:{silent.getsockname()[1]}", "default", lazy=True)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await TemporalConvergence(client, "any", timeout_seconds=0.1).wake(workspace_id, OWNER)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_refused_wake_returns_and_is_logged(
    temporal_server: TemporalServer, workspace_id: WorkspaceId, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(temporal_server.address, "no-such-namespace", lazy=True)
    await TemporalConvergence(client, "any").wake(workspace_id, OWNER)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_the_same_client_works_once_temporal_is_back(workspace_id: WorkspaceId, tmp_path: Path) -> None:
    port = free_port()
    client = await connect(f"127.0.0.1:{port}", "default", lazy=True)
    convergence = TemporalConvergence(client, "any")
    await convergence.wake(workspace_id, OWNER)
    with temporal_dev_server(tmp_path, port):
        await ensure_search_attributes(client)
        await convergence.wake(workspace_id, OWNER)
        assert (await run_of(client, workspace_id).describe()).workflow_type == "WorkspaceWorkflow"
