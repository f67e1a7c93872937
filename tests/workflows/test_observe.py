"""The sweep wakes what drifted and what has not converged, and nothing else."""

from codehub.domain.conditions import Resource
from codehub.domain.states import DesiredState, ErrorReason, Phase
from tests.workflows.harness import ControlPlane

OBSERVE = "ObserveWorkflow"


async def test_a_quiet_world_wakes_nobody(plane: ControlPlane) -> None:
    await plane.reach(DesiredState.RUNNING)
    await plane.reach(DesiredState.STANDBY)
    await plane.reach(DesiredState.ARCHIVED)
    for _ in range(3):
        assert await plane.run_sweep(OBSERVE) == {"drifted": 0, "not_converged": 0}


async def test_a_killed_container_is_noticed_and_started_again(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    await plane.run_sweep(OBSERVE)
    plane.world.instances[workspace_id].alive = False
    assert (await plane.run_sweep(OBSERVE))["drifted"] == 1
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    assert plane.world.instances[workspace_id].alive


async def test_a_removed_volume_is_noticed_as_lost_data(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    await plane.run_sweep(OBSERVE)
    del plane.world.volumes[workspace_id]
    assert (await plane.run_sweep(OBSERVE))["drifted"] == 1
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.DATA_LOST


async def test_a_worker_that_has_just_started_compares_everything(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    del plane.world.volumes[workspace_id]
    assert (await plane.run_sweep(OBSERVE))["drifted"] == 1


async def test_a_lost_wake_costs_one_period(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    await plane.want(workspace_id, DesiredState.RUNNING)
    assert (await plane.run_sweep(OBSERVE))["not_converged"] == 1
    await plane.client.get_workflow_handle(f"workspace-{workspace_id}").result()
    assert (await plane.look(workspace_id)).phase is Phase.RUNNING


async def test_a_leftover_volume_of_a_parked_workspace_is_cleaned_up(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    await plane.run_sweep(OBSERVE)
    plane.write(workspace_id, "leftover")
    assert (await plane.run_sweep(OBSERVE))["drifted"] == 1
    await plane.converge(workspace_id)
    assert workspace_id not in plane.world.volumes


async def test_a_provider_that_does_not_answer_is_not_an_empty_one(plane: ControlPlane) -> None:
    await plane.reach(DesiredState.RUNNING)
    await plane.run_sweep(OBSERVE)
    for resource in (Resource.CONTAINER, Resource.VOLUME):
        plane.world.down = {resource}
        assert (await plane.run_sweep(OBSERVE))["drifted"] == 0


async def test_an_error_is_not_woken_again_and_again(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    del plane.world.volumes[workspace_id]
    await plane.converge(workspace_id)
    assert await plane.run_sweep(OBSERVE) == {"drifted": 0, "not_converged": 0}
