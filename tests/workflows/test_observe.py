"""The sweep wakes workspaces that have drifted or not converged, and no others."""

from dataclasses import replace
from datetime import UTC, datetime

from codehub.db.snapshots import save_observation
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.judge import HANG_GRACE
from codehub.domain.states import DesiredState, ErrorReason, Phase
from tests.workflows.harness import ControlPlane

OBSERVE = "ObserveWorkflow"


async def test_an_unchanged_world_wakes_nothing(plane: ControlPlane) -> None:
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


async def test_a_short_health_check_failure_ends_nothing_though_the_limits_have_changed(
    plane: ControlPlane,
) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    await plane.run_sweep(OBSERVE)
    before, done = plane.world.instances[workspace_id], await plane.operations(workspace_id)
    plane.world.configuration = {"memory": "4 GiB"}
    before.answers = False
    for _ in range(2):
        await plane.run_sweep(OBSERVE)
        assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    before.answers = True
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    assert plane.world.instances[workspace_id] is before
    assert await plane.operations(workspace_id) == done


async def test_an_instance_that_does_not_respond_is_not_woken_again_before_its_time_is_up(
    plane: ControlPlane,
) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    await plane.run_sweep(OBSERVE)
    plane.world.instances[workspace_id].answers = False
    assert (await plane.run_sweep(OBSERVE))["drifted"] == 1
    await plane.converge(workspace_id)
    for _ in range(3):
        assert await plane.run_sweep(OBSERVE) == {"drifted": 0, "not_converged": 0}


async def test_an_instance_that_hangs_for_long_is_replaced(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    hung = plane.world.instances[workspace_id]
    hung.answers = False
    await plane.converge(workspace_id)
    await let_the_grace_pass(plane, workspace_id)
    assert (await plane.run_sweep(OBSERVE))["drifted"] == 1
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    assert plane.world.instances[workspace_id] is not hung
    assert plane.world.instances[workspace_id].answers


async def let_the_grace_pass(plane: ControlPlane, workspace_id: WorkspaceId) -> None:
    """Move the start of the hang this far into the past."""
    row = await plane.snapshot(workspace_id)
    answers = row.conditions.container_answers
    assert answers.last_transition_time is not None
    earlier = replace(answers, last_transition_time=answers.last_transition_time - HANG_GRACE)
    conditions = replace(row.conditions, container_answers=earlier)
    async with plane.database.transaction() as session:
        await save_observation(session, replace(row, conditions=conditions), datetime.now(UTC))


async def test_a_changed_configuration_is_noticed_and_reported_once(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    before = plane.world.instances[workspace_id]
    plane.world.configuration = {"memory": "4 GiB"}
    assert (await plane.run_sweep(OBSERVE))["drifted"] == 1
    told = await plane.converge(workspace_id)
    assert told.conditions.restart_to_apply == "Restart to apply: memory."
    assert plane.world.instances[workspace_id] is before
    assert (await plane.run_sweep(OBSERVE))["drifted"] == 0
    await plane.want(workspace_id, DesiredState.STANDBY)
    assert (await plane.converge(workspace_id)).conditions.restart_to_apply is None


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
    assert (await plane.snapshot(workspace_id)).phase is Phase.RUNNING


async def test_a_leftover_volume_of_an_archived_workspace_is_removed(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    await plane.run_sweep(OBSERVE)
    plane.write(workspace_id, "leftover")
    assert (await plane.run_sweep(OBSERVE))["drifted"] == 1
    await plane.converge(workspace_id)
    assert workspace_id not in plane.world.volumes


async def test_a_provider_that_does_not_respond_is_not_an_empty_one(plane: ControlPlane) -> None:
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
