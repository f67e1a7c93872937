"""No wake is lost, however close to the end of the workflow it arrives, and operations never overlap."""

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Phase
from codehub.services.errors import OperationInProgress
from testkit.waiting import until
from tests.workflows.harness import ControlPlane
from tests.workflows.real import operation_runs, real_plane

__all__ = ["real_plane"]

WORKSPACES = 10
WAKES_EACH = 50


@pytest.mark.timeout(600)
async def test_500_wakes_that_race_the_end_of_the_workflow_are_all_handled(real_plane: ControlPlane) -> None:
    workspaces = [await real_plane.create(DesiredState.STANDBY) for _ in range(WORKSPACES)]
    async with asyncio.TaskGroup() as tasks:
        for workspace_id in workspaces:
            tasks.create_task(toggle_desired_state(real_plane, workspace_id))
    for workspace_id in workspaces:
        await assert_no_overlap(real_plane, workspace_id)


async def toggle_desired_state(plane: ControlPlane, workspace_id: WorkspaceId) -> None:
    """Request the other state as soon as the last one is reached: the workflow is about to end.

    No sweep runs here, so a lost wake is never made up for and the wait fails.
    """
    for number in range(WAKES_EACH):
        desired = DesiredState.RUNNING if number % 2 else DesiredState.STANDBY
        await ask(plane, workspace_id, desired)
        await plane.convergence.wake(workspace_id, str(plane.owner))

        async def arrived(wanted: DesiredState = desired) -> bool:
            snapshot = await plane.snapshot(workspace_id)
            return snapshot.phase is Phase(wanted.value)

        await until(arrived, f"wake {number} of {workspace_id}")


async def ask(plane: ControlPlane, workspace_id: WorkspaceId, desired: DesiredState) -> None:
    async def accepted() -> bool:
        try:
            await plane.want(workspace_id, desired)
        except OperationInProgress:
            return False
        return True

    await until(accepted, f"{desired} accepted for {workspace_id}")


async def assert_no_overlap(plane: ControlPlane, workspace_id: WorkspaceId) -> None:
    claimed = Counter(await plane.operations(workspace_id))

    async def all_listed() -> bool:
        runs = await operation_runs(plane, workspace_id)
        return len(runs) >= claimed.total() and all(run.close_time for run in runs)

    await until(all_listed, "every operation listed as closed")
    runs = await operation_runs(plane, workspace_id)
    assert claimed.total() == WAKES_EACH
    for earlier, later in pairwise(runs):
        assert earlier.close_time is not None
        assert earlier.close_time <= later.start_time, f"{earlier.workflow_type} and {later.workflow_type}"
