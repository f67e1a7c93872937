"""A run with a long history continues as a new one in the middle of a path."""

from temporalio.client import WorkflowExecutionStatus

from codehub.domain.states import DesiredState, Phase
from tests.workflows.harness import ControlPlane
from tests.workflows.long_runs import long_run_plane

__all__ = ["long_run_plane"]


async def test_a_long_run_continues_as_new_between_two_operations(long_run_plane: ControlPlane) -> None:
    plane = long_run_plane
    workspace_id = await plane.create(DesiredState.RUNNING)
    handle = await plane.start(workspace_id)
    await handle.result()
    first = plane.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
    assert (await first.describe()).status is WorkflowExecutionStatus.CONTINUED_AS_NEW
    assert (await plane.snapshot(workspace_id)).phase is Phase.RUNNING
    assert await plane.operations(workspace_id) == ["PROVISIONING", "STARTING"]
