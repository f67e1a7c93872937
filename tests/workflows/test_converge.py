"""The workflow of a workspace: paths, waits, errors and changed requests."""

from itertools import product

import pytest

from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from tests.workflows.harness import ControlPlane

STATES = [DesiredState.RUNNING, DesiredState.STANDBY, DesiredState.ARCHIVED]

PATHS = {
    (DesiredState.RUNNING, DesiredState.ARCHIVED): ["STOPPING", "ARCHIVING"],
    (DesiredState.RUNNING, DesiredState.STANDBY): ["STOPPING"],
    (DesiredState.STANDBY, DesiredState.RUNNING): ["STARTING"],
    (DesiredState.STANDBY, DesiredState.ARCHIVED): ["ARCHIVING"],
    (DesiredState.ARCHIVED, DesiredState.RUNNING): ["RESTORING", "STARTING"],
    (DesiredState.ARCHIVED, DesiredState.STANDBY): ["RESTORING"],
}


@pytest.mark.parametrize(("begin", "end"), list(product(STATES, STATES)))
async def test_every_state_is_reached_from_every_other(
    plane: ControlPlane, begin: DesiredState, end: DesiredState
) -> None:
    workspace_id = await plane.reach(begin)
    before = await plane.operations(workspace_id)
    await plane.want(workspace_id, end)
    snapshot = await plane.converge(workspace_id)
    assert (snapshot.phase.value, snapshot.operation, snapshot.error_reason) == (
        end.value,
        Operation.NONE,
        None,
    )
    assert (await plane.operations(workspace_id))[len(before) :] == PATHS.get((begin, end), [])


async def test_the_files_come_back_from_an_archive(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    plane.write(workspace_id, "precious")
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    archived = await plane.converge(workspace_id)
    assert workspace_id not in plane.world.volumes
    assert plane.read_archived(archived.archive_key) == "precious"
    await plane.want(workspace_id, DesiredState.RUNNING)
    running = await plane.converge(workspace_id)
    assert plane.read(workspace_id) == "precious"
    assert running.restore_marker == running.archive_key


async def test_work_done_since_the_last_archive_is_in_the_next_one(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    await plane.want(workspace_id, DesiredState.STANDBY)
    restored = await plane.converge(workspace_id)
    plane.write(workspace_id, "written since")
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    archived = await plane.converge(workspace_id)
    assert (archived.phase, archived.error_reason) == (Phase.ARCHIVED, None)
    assert archived.archive_key != restored.archive_key
    assert plane.read_archived(archived.archive_key) == "written since"


async def test_a_workflow_of_a_missing_workspace_just_ends(plane: ControlPlane) -> None:
    handle = await plane.start(WorkspaceId("99999999-9999-4999-8999-999999999999"))
    assert await handle.result() == "There is no such workspace."


@pytest.mark.parametrize("resource", Resource)
async def test_an_outage_is_waited_out_without_counting_attempts(
    plane: ControlPlane, resource: Resource
) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    plane.world.down.add(resource)
    waiting = await plane.converge(workspace_id)
    assert (waiting.phase, waiting.operation, waiting.error_count) == (Phase.STANDBY, Operation.NONE, 0)
    plane.world.down.clear()
    assert (await plane.converge(workspace_id)).phase is Phase.ARCHIVED


async def test_a_killed_container_is_started_again(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    plane.world.instances[workspace_id].alive = False
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    assert (await plane.operations(workspace_id))[-1] == "STARTING"


async def test_a_lost_volume_is_data_lost_and_not_an_empty_home(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    del plane.world.volumes[workspace_id]
    await plane.want(workspace_id, DesiredState.RUNNING)
    lost = await plane.converge(workspace_id)
    assert (lost.phase, lost.error_reason) == (Phase.ERROR, ErrorReason.DATA_LOST)
    assert workspace_id not in plane.world.volumes


async def test_an_error_waits_until_a_person_decides(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    del plane.world.volumes[workspace_id]
    await plane.converge(workspace_id)
    operations = await plane.operations(workspace_id)
    assert (await plane.converge(workspace_id)).phase is Phase.ERROR
    assert await plane.operations(workspace_id) == operations


async def test_an_operation_that_a_dead_run_left_behind_is_finished(plane: ControlPlane) -> None:
    workspace_id = await plane.create(DesiredState.STANDBY, operation="PROVISIONING", op_started_at=plane.now)
    snapshot = await plane.converge(workspace_id)
    assert (snapshot.phase, snapshot.operation) == (Phase.STANDBY, Operation.NONE)
    assert await plane.operations(workspace_id) == []


async def test_a_result_that_already_exists_is_settled_and_not_repeated(plane: ControlPlane) -> None:
    workspace_id = await plane.create(DesiredState.STANDBY, operation="PROVISIONING", op_started_at=plane.now)
    plane.write(workspace_id, "precious")
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert ("volumes.provision", workspace_id) not in plane.world.calls


async def test_the_audit_trail_records_each_step(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    story = [(each.kind, each.operation, each.phase) for each in await plane.events(workspace_id)]
    assert story == [
        ("operation_claimed", "PROVISIONING", "PENDING"),
        ("operation_completed", "PROVISIONING", "STANDBY"),
        ("operation_claimed", "STARTING", "STANDBY"),
        ("operation_completed", "STARTING", "RUNNING"),
    ]
