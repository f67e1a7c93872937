"""After an operator cancels or terminates a workflow in the Web UI, the next sweep continues it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle

from codehub.contracts import operation_workflow_id, workspace_workflow_id
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from testkit.waiting import until
from tests.workflows.harness import ControlPlane
from tests.workflows.real import real_plane

__all__ = ["real_plane"]

REFUSED = EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED

Interfere = Callable[[WorkflowHandle[object, object]], Awaitable[None]]


async def cancel(handle: WorkflowHandle[object, object]) -> None:
    await handle.cancel()


async def terminate(handle: WorkflowHandle[object, object]) -> None:
    await handle.terminate("an operator did this")


async def held_while_starting(plane: ControlPlane) -> WorkspaceId:
    """A workspace whose STARTING runs until the gate is opened."""
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.world.gates["instances.start"] = asyncio.Event()
    await plane.want(workspace_id, DesiredState.RUNNING)
    await plane.convergence.wake(workspace_id, str(plane.owner))

    async def under_way() -> bool:
        return ("instances.start", workspace_id) in plane.world.calls

    await until(under_way, "STARTING under way")
    return workspace_id


@pytest.mark.parametrize("interfere", [cancel, terminate])
async def test_an_interrupted_operation_is_finished_after_the_next_sweep(
    real_plane: ControlPlane, interfere: Interfere
) -> None:
    workspace_id = await held_while_starting(real_plane)
    handle = real_plane.client.get_workflow_handle(workspace_workflow_id(workspace_id))
    await interfere(handle)

    async def ended() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    await until(ended, "the workflow ended")
    left = await real_plane.snapshot(workspace_id)
    assert (left.phase, left.operation) == (Phase.STANDBY, Operation.STARTING)
    real_plane.world.gates["instances.start"].set()
    assert (await real_plane.run_sweep("ObserveWorkflow"))["not_converged"] == 1
    await expect_running(real_plane, workspace_id)


@pytest.mark.parametrize("interfere", [cancel, terminate])
async def test_an_operation_that_is_ended_from_outside_is_retried(
    real_plane: ControlPlane, interfere: Interfere
) -> None:
    workspace_id = await held_while_starting(real_plane)
    operation = real_plane.client.get_workflow_handle(f"{workspace_workflow_id(workspace_id)}-starting")
    await interfere(operation)

    async def counted() -> bool:
        return (await real_plane.snapshot(workspace_id)).error_count == 1

    await until(counted, "a failed attempt counted")
    real_plane.world.gates["instances.start"].set()
    await expect_running(real_plane, workspace_id)


async def test_an_operation_that_lost_its_parent_is_waited_for_and_not_duplicated(
    real_plane: ControlPlane,
) -> None:
    workspace_id = await real_plane.reach(DesiredState.STANDBY)
    await real_plane.want(workspace_id, DesiredState.RUNNING)
    real_plane.world.gates["instances.start"] = asyncio.Event()
    claimed = await real_plane.claim(workspace_id, Operation.STARTING)
    await real_plane.client.start_workflow(
        "Starting", claimed, id=operation_workflow_id(claimed), task_queue=real_plane.task_queue
    )
    handle = await real_plane.start(workspace_id)

    async def met_the_leftover_run() -> bool:
        history = await handle.fetch_history()
        return any(event.event_type == REFUSED for event in history.events)

    await until(met_the_leftover_run, "the workflow met the operation that was left behind")
    real_plane.world.gates["instances.start"].set()
    await handle.result()
    await expect_running(real_plane, workspace_id)
    assert real_plane.world.calls.count(("instances.start", workspace_id)) == 1


async def expect_running(plane: ControlPlane, workspace_id: WorkspaceId) -> None:
    async def running() -> bool:
        snapshot = await plane.snapshot(workspace_id)
        return (snapshot.phase, snapshot.operation) == (Phase.RUNNING, Operation.NONE)

    await until(running, "RUNNING")
    assert (await plane.snapshot(workspace_id)).error_count == 0
