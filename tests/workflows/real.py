"""The control plane on a real Temporal server, which has the real time."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from temporalio.client import Client, WorkflowExecution

from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from tests.workflows.harness import ControlPlane, running_control_plane

__all__ = ["real_plane"]


@pytest.fixture
async def real_plane(
    temporal_client: Client, database: Database, redis_client: Redis
) -> AsyncIterator[ControlPlane]:
    async with running_control_plane(temporal_client, database, redis_client) as plane:
        yield plane


async def operation_runs(plane: ControlPlane, workspace_id: WorkspaceId) -> list[WorkflowExecution]:
    """Return every run of an operation's workflow for this workspace, ordered by start."""
    query = f'WorkspaceId = "{workspace_id}" AND WorkflowType != "WorkspaceWorkflow"'
    runs = [each async for each in plane.client.list_workflows(query)]
    return sorted(runs, key=lambda run: run.start_time)
