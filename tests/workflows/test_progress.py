"""People see the progress of a running operation, and operations do not depend on that."""

import asyncio

import pytest
from temporalio.testing import WorkflowEnvironment

from codehub.adapters.redis.connection import create_client
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState
from codehub.ports import Progress
from testkit.processes import free_port
from testkit.waiting import until
from tests.progress_boards import posted
from tests.workflows.harness import ControlPlane, running_control_plane

# The fakes report this while they are held.
TRANSFER, LAUNCH, STOP = Progress("upload"), Progress("launch"), Progress("stop")


async def until_shown(plane: ControlPlane, workspace_id: WorkspaceId, progress: Progress | None) -> None:
    async def is_shown() -> bool:
        return await posted(plane.board, workspace_id) == progress

    await until(is_shown, f"{progress} is shown")


@pytest.mark.parametrize(
    ("before", "after", "call", "progress"),
    [
        (DesiredState.ARCHIVED, DesiredState.STANDBY, "jobs.restore", TRANSFER),
        (DesiredState.STANDBY, DesiredState.ARCHIVED, "jobs.archive", TRANSFER),
        (DesiredState.STANDBY, DesiredState.RUNNING, "instances.start", LAUNCH),
        (DesiredState.RUNNING, DesiredState.STANDBY, "instances.stop", STOP),
    ],
)
async def test_progress_is_shown_while_an_operation_runs(
    plane: ControlPlane, before: DesiredState, after: DesiredState, call: str, progress: Progress
) -> None:
    workspace_id = await plane.reach(before)
    gate = plane.world.gates[call] = asyncio.Event()
    await plane.want(workspace_id, after)
    run = await plane.start(workspace_id)
    await until_shown(plane, workspace_id, progress)
    gate.set()
    await run.result()
    await until_shown(plane, workspace_id, None)


async def test_operations_succeed_without_redis(skipping: WorkflowEnvironment, database: Database) -> None:
    async with (
        create_client(f"redis://127.0.0.1:{free_port()}/0") as nowhere,
        running_control_plane(skipping.client, database, nowhere) as plane,
    ):
        workspace_id = await plane.reach(DesiredState.ARCHIVED)
        await plane.want(workspace_id, DesiredState.RUNNING)
        await plane.converge(workspace_id)
        assert workspace_id in plane.world.instances
