"""A home on a lost node: the workspace waits and says so, and a person may go back to the last archive."""

from datetime import UTC, datetime, timedelta

import pytest

from activities.observer import Observer
from activities.workspace import WorkspaceActivities
from codehub.domain.conditions import LostNode, Resource, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.services.errors import InvalidState
from testkit.fakes import FakeArchives, FakeInstances, FakeVolumes
from tests.workflows.harness import ControlPlane
from tests.workflows.test_recovering import OBSERVE, kinds, pending, recover, with_older_archive

SINCE = datetime.now(UTC) - timedelta(hours=1)
NODE = LostNode("The home is on a disk of the node n1, which has not responded.", SINCE)
RESTORE = RecoverChoice.RESTORE_ARCHIVE


class Killed(Exception):
    """Raised where a worker is killed."""


class DiesAfterSettingAside(FakeVolumes):
    async def set_aside(self, workspace_id: WorkspaceId) -> None:
        await super().set_aside(workspace_id)
        raise Killed


def observing(plane: ControlPlane, volumes: FakeVolumes) -> WorkspaceActivities:
    observer = Observer(FakeInstances(plane.world), volumes, FakeArchives(plane.world))
    return WorkspaceActivities(plane.database, observer)


async def out_of_reach(plane: ControlPlane, desired: DesiredState = DesiredState.RUNNING) -> WorkspaceId:
    """Lose the node of a running workspace with `new` in its volume and `old` in its archive."""
    workspace_id = await with_older_archive(plane)
    await plane.want(workspace_id, DesiredState.RUNNING)
    await plane.converge(workspace_id)
    plane.world.instances[workspace_id].alive = False
    plane.world.lost_nodes[workspace_id] = NODE
    await plane.want(workspace_id, desired)
    await plane.converge(workspace_id)
    return workspace_id


async def message_of(plane: ControlPlane, workspace_id: WorkspaceId) -> str:
    return (await plane.snapshot(workspace_id)).conditions.volume_reachable.message


async def test_it_waits_and_says_since_when(plane: ControlPlane) -> None:
    workspace_id = await out_of_reach(plane)
    waiting = await plane.snapshot(workspace_id)
    assert (waiting.phase, waiting.operation, waiting.error_reason) == (
        Phase.STANDBY,
        Operation.NONE,
        None,
    )
    assert waiting.waiting_for == (Resource.VOLUME,)
    reach = waiting.conditions.volume_reachable
    assert (reach.reason, reach.message, reach.last_transition_time) == ("NodeLost", NODE.message, SINCE)


async def test_it_continues_by_itself_when_the_node_is_back(plane: ControlPlane) -> None:
    workspace_id = await out_of_reach(plane)
    plane.world.lost_nodes.clear()
    back = await plane.converge(workspace_id)
    assert (back.phase, back.waiting_for) == (Phase.RUNNING, ())
    assert not back.conditions.home_is_out_of_reach
    assert plane.read(workspace_id) == "new"


@pytest.mark.parametrize("choice", [RecoverChoice.WAIT, RecoverChoice.RETRY, None])
async def test_waiting_changes_nothing(plane: ControlPlane, choice: RecoverChoice | None) -> None:
    workspace_id = await out_of_reach(plane)
    before = await plane.snapshot(workspace_id)
    await recover(plane, workspace_id, choice)
    after = await plane.converge(workspace_id)
    assert (after.phase, after.archive_key, after.conditions.volume_ready) == (
        before.phase,
        before.archive_key,
        before.conditions.volume_ready,
    )
    assert await pending(plane, workspace_id) is None
    assert await kinds(plane, workspace_id) == ["recovery_requested"]
    assert plane.read(workspace_id) == "new"


async def test_the_last_archive_is_restored_and_the_disk_is_kept(plane: ControlPlane) -> None:
    workspace_id = await out_of_reach(plane)
    await recover(plane, workspace_id, RESTORE)
    recovered = await plane.converge(workspace_id)
    assert (recovered.phase, recovered.error_reason) == (Phase.RUNNING, None)
    assert plane.read(workspace_id) == "old"
    assert [each["notes"] for each in plane.world.set_aside] == [b"new"]
    assert await kinds(plane, workspace_id) == ["recovery_requested", "recovered"]


async def test_a_restore_that_a_lost_node_cut_off_is_repeated_elsewhere(plane: ControlPlane) -> None:
    workspace_id = await with_older_archive(plane)
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    await plane.converge(workspace_id)
    plane.world.volumes[workspace_id] = {"part": b""}
    plane.world.lost_nodes[workspace_id] = NODE
    await plane.want(workspace_id, DesiredState.STANDBY)
    assert (await plane.converge(workspace_id)).phase is Phase.ARCHIVED
    await recover(plane, workspace_id, RESTORE)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert plane.read(workspace_id) == "new"
    assert plane.world.set_aside == [{"part": b""}]


async def test_a_worker_that_dies_after_setting_the_home_aside_is_succeeded(plane: ControlPlane) -> None:
    workspace_id = await out_of_reach(plane, DesiredState.STANDBY)
    await recover(plane, workspace_id, RESTORE)
    with pytest.raises(Killed):
        await observing(plane, DiesAfterSettingAside(plane.world)).observe(workspace_id)
    assert await pending(plane, workspace_id) is not None
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert plane.read(workspace_id) == "old"
    assert len(plane.world.set_aside) == 1


@pytest.mark.parametrize("call", ["instances.stop", "volumes.set_aside"])
async def test_what_stands_in_the_way_is_told_and_tried_again(plane: ControlPlane, call: str) -> None:
    workspace_id = await out_of_reach(plane)
    await recover(plane, workspace_id, RESTORE)
    plane.fail(call, Transient(ErrorReason.ACTION_FAILED, "Ask an administrator."))
    await plane.converge(workspace_id)
    assert await message_of(plane, workspace_id) == f"{NODE.message} Ask an administrator."
    assert await pending(plane, workspace_id) is not None
    assert plane.world.set_aside == []
    await plane.run_sweep(OBSERVE)
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING


async def test_nothing_is_given_up_while_nobody_sees_the_archive(plane: ControlPlane) -> None:
    workspace_id = await out_of_reach(plane)
    plane.world.down.add(Resource.ARCHIVE)
    await recover(plane, workspace_id, RESTORE)
    await plane.converge(workspace_id)
    assert ("volumes.set_aside", workspace_id) not in plane.world.calls
    assert await pending(plane, workspace_id) is not None
    plane.world.down.clear()
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    assert plane.read(workspace_id) == "old"


async def test_an_archive_that_is_gone_is_refused(plane: ControlPlane) -> None:
    workspace_id = await out_of_reach(plane)
    await recover(plane, workspace_id, RESTORE)
    plane.lose_archive((await plane.snapshot(workspace_id)).archive_key)
    await plane.converge(workspace_id)
    assert plane.world.set_aside == []
    assert await kinds(plane, workspace_id) == ["recovery_requested", "recovery_refused"]
    with pytest.raises(InvalidState):
        await recover(plane, workspace_id, RESTORE)


async def test_a_node_that_is_back_before_the_choice_is_carried_out_keeps_its_home(
    plane: ControlPlane,
) -> None:
    workspace_id = await out_of_reach(plane)
    await recover(plane, workspace_id, RESTORE)
    plane.world.lost_nodes.clear()
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    assert plane.read(workspace_id) == "new"
    assert await kinds(plane, workspace_id) == ["recovery_requested", "recovery_refused"]


async def test_a_change_of_mind_stops_the_recovery(plane: ControlPlane) -> None:
    workspace_id = await out_of_reach(plane)
    await recover(plane, workspace_id, RESTORE)
    plane.fail("volumes.set_aside", Transient(ErrorReason.ACTION_FAILED, "Not yet."))
    await plane.converge(workspace_id)
    await recover(plane, workspace_id, RecoverChoice.WAIT)
    await plane.converge(workspace_id)
    assert await pending(plane, workspace_id) is None
    assert plane.world.set_aside == []


async def test_a_change_of_mind_while_the_instance_is_stopped_keeps_the_home(plane: ControlPlane) -> None:
    workspace_id = await out_of_reach(plane)
    await recover(plane, workspace_id, RESTORE)

    class ChangesMind(FakeInstances):
        async def stop(self, workspace_id: WorkspaceId) -> None:
            await super().stop(workspace_id)
            await recover(plane, workspace_id, RecoverChoice.WAIT)

    observer = Observer(ChangesMind(plane.world), FakeVolumes(plane.world), FakeArchives(plane.world))
    await WorkspaceActivities(plane.database, observer).observe(workspace_id)
    assert plane.world.set_aside == []


async def test_without_an_archive_there_is_only_waiting(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.world.lost_nodes[workspace_id] = NODE
    await plane.want(workspace_id, DesiredState.RUNNING)
    await plane.converge(workspace_id)
    for choice in (RESTORE, RecoverChoice.START_EMPTY, RecoverChoice.USE_DISK):
        with pytest.raises(InvalidState, match="choose `wait`"):
            await recover(plane, workspace_id, choice)


async def test_a_deletion_can_go_on_with_the_last_archive(plane: ControlPlane) -> None:
    workspace_id = await out_of_reach(plane)
    await plane.delete(workspace_id)
    assert (await plane.converge(workspace_id)).phase is Phase.DELETING
    await recover(plane, workspace_id, RESTORE)
    deleted = await plane.converge(workspace_id)
    assert deleted.phase is Phase.DELETED
    assert plane.read_archived(deleted.archive_key) == "old"
    assert len(plane.world.set_aside) == 1


async def test_an_outage_of_the_provider_offers_no_choice(plane: ControlPlane) -> None:
    workspace_id = await with_older_archive(plane)
    plane.world.down.add(Resource.VOLUME)
    await plane.want(workspace_id, DesiredState.RUNNING)
    await plane.converge(workspace_id)
    with pytest.raises(InvalidState, match="no error"):
        await recover(plane, workspace_id, RESTORE)


async def test_the_sweep_removes_jobs_of_dead_callers(plane: ControlPlane) -> None:
    await plane.run_sweep(OBSERVE)
    assert ("jobs.remove_abandoned", "") in plane.world.calls
