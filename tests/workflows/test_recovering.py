"""Recovery: each error can be left, and each choice does what it says and nothing else."""

from datetime import UTC, datetime

import pytest

from activities.observer import Observer
from activities.workspace import WorkspaceActivities
from codehub.contracts import AttemptFailed
from codehub.db.recoveries import RecoverRequest, load_recover_request
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.failures import MAX_RETRY, Permanent, Transient
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.services.errors import InvalidState
from codehub.services.recovery import request_recovery
from codehub.services.requests import RequestContext
from testkit.fakes import IMAGE, FakeArchives, FakeInstance, FakeInstances, FakeVolumes
from tests.workflows.harness import LIMITS, ControlPlane

OBSERVE = "ObserveWorkflow"


async def recover(
    plane: ControlPlane, workspace_id: WorkspaceId, choice: RecoverChoice | None = None
) -> None:
    now = datetime.now(UTC)
    await request_recovery(plane.database, workspace_id, choice, context=RequestContext("test", LIMITS, now))


async def pending(plane: ControlPlane, workspace_id: WorkspaceId) -> RecoverRequest | None:
    async with plane.database.transaction() as session:
        return await load_recover_request(session, workspace_id)


async def kinds(plane: ControlPlane, workspace_id: WorkspaceId) -> list[str]:
    return [each.kind for each in await plane.events(workspace_id) if each.kind.startswith("recover")]


async def with_older_archive(plane: ControlPlane) -> WorkspaceId:
    """Create a workspace in STANDBY with `new` in its volume and `old` in its archive."""
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.write(workspace_id, "old")
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    await plane.converge(workspace_id)
    await plane.want(workspace_id, DesiredState.STANDBY)
    await plane.converge(workspace_id)
    plane.write(workspace_id, "new")
    return workspace_id


async def with_lost_volume(plane: ControlPlane) -> WorkspaceId:
    workspace_id = await with_older_archive(plane)
    del plane.world.volumes[workspace_id]
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.DATA_LOST
    return workspace_id


@pytest.mark.parametrize("reason", [*ErrorReason])
async def test_every_error_ends_when_its_cause_is_gone(plane: ControlPlane, reason: ErrorReason) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.write(workspace_id, "precious")
    await plane.want(workspace_id, DesiredState.RUNNING)
    plane.fail("instances.start", *[Permanent(reason, "It is over.")] * MAX_RETRY)
    assert (await plane.converge(workspace_id)).phase is Phase.ERROR
    plane.world.failures.clear()
    await recover(plane, workspace_id, RecoverChoice.RETRY)
    recovered = await plane.converge(workspace_id)
    assert (recovered.phase, recovered.operation) == (Phase.RUNNING, Operation.NONE)
    assert (recovered.error_reason, recovered.error_message, recovered.error_count) == (None, None, 0)
    assert plane.read(workspace_id) == "precious"
    assert await pending(plane, workspace_id) is None
    assert await kinds(plane, workspace_id) == ["recovery_requested", "recovered"]


async def test_an_error_whose_cause_stays_comes_back(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    await plane.want(workspace_id, DesiredState.RUNNING)
    for _ in range(2):
        plane.fail("instances.start", Permanent(ErrorReason.IMAGE_PULL_FAILED, "There is no image."))
        assert (await plane.converge(workspace_id)).error_reason is ErrorReason.IMAGE_PULL_FAILED
        await recover(plane, workspace_id)
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING


async def test_retry_takes_the_volume_that_was_put_back(plane: ControlPlane) -> None:
    workspace_id = await with_lost_volume(plane)
    plane.write(workspace_id, "new")
    assert (await plane.converge(workspace_id)).phase is Phase.ERROR
    await recover(plane, workspace_id, RecoverChoice.RETRY)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert plane.read(workspace_id) == "new"


async def test_retry_keeps_everything(plane: ControlPlane) -> None:
    workspace_id = await with_lost_volume(plane)
    key = (await plane.snapshot(workspace_id)).archive_key
    await recover(plane, workspace_id, RecoverChoice.RETRY)
    still = await plane.converge(workspace_id)
    assert (still.phase, still.error_reason, still.archive_key) == (Phase.ERROR, ErrorReason.DATA_LOST, key)
    assert await pending(plane, workspace_id) is None
    # Another choice is still possible.
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY


async def test_restore_archive_brings_the_older_files_back(plane: ControlPlane) -> None:
    workspace_id = await with_lost_volume(plane)
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert plane.read(workspace_id) == "old"
    assert (await plane.operations(workspace_id))[-1] == Operation.RESTORING


async def test_start_empty_begins_with_a_new_home(plane: ControlPlane) -> None:
    workspace_id = await with_lost_volume(plane)
    await recover(plane, workspace_id, RecoverChoice.START_EMPTY)
    recovered = await plane.converge(workspace_id)
    assert (recovered.phase, recovered.archive_key) == (Phase.STANDBY, None)
    assert plane.world.volumes[workspace_id] == {}


async def test_a_lost_archive_is_given_up_only_by_choice(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    plane.lose_archive((await plane.snapshot(workspace_id)).archive_key)
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.DATA_LOST
    await recover(plane, workspace_id, RecoverChoice.START_EMPTY)
    recovered = await plane.converge(workspace_id)
    assert recovered.phase is Phase.ARCHIVED
    assert recovered.archive_key in plane.archive_keys()


async def test_an_archive_that_a_restore_did_not_find_can_be_given_up(plane: ControlPlane) -> None:
    """A failed restore observes what is left, so that there is something to choose from."""
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    await plane.want(workspace_id, DesiredState.STANDBY)
    claimed = await plane.claim(workspace_id, Operation.RESTORING)
    plane.lose_archive(claimed.archive_key)
    observer = Observer(FakeInstances(plane.world), FakeVolumes(plane.world), FakeArchives(plane.world))
    failed = AttemptFailed(workspace_id, ErrorReason.DATA_LOST, "There is no such archive.", 0)
    await WorkspaceActivities(plane.database, observer).record_failure(failed)
    await recover(plane, workspace_id, RecoverChoice.START_EMPTY)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY


async def test_a_container_without_its_volume_is_removed(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    plane.world.instances[workspace_id] = FakeInstance(IMAGE)
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.CONTAINER_WITHOUT_VOLUME
    await recover(plane, workspace_id)
    assert (await plane.converge(workspace_id)).phase is Phase.ARCHIVED
    assert workspace_id not in plane.world.instances


@pytest.mark.parametrize("choice", [RecoverChoice.RESTORE_ARCHIVE, RecoverChoice.START_EMPTY])
async def test_accepting_the_loss_of_a_volume_removes_its_container_first(
    plane: ControlPlane, choice: RecoverChoice
) -> None:
    workspace_id = await with_older_archive(plane)
    await plane.want(workspace_id, DesiredState.RUNNING)
    await plane.converge(workspace_id)
    del plane.world.volumes[workspace_id]
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.DATA_LOST
    old = plane.world.instances[workspace_id]
    await recover(plane, workspace_id, choice)
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    assert plane.world.instances[workspace_id] is not old


async def test_a_container_that_cannot_be_removed_is_retried_by_the_sweep(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    plane.world.instances[workspace_id] = FakeInstance(IMAGE)
    await plane.converge(workspace_id)
    await recover(plane, workspace_id)
    plane.fail("instances.stop", Transient(ErrorReason.ACTION_FAILED, "It does not end."))
    assert (await plane.converge(workspace_id)).phase is Phase.ERROR
    assert await pending(plane, workspace_id) is not None
    await plane.run_sweep(OBSERVE)
    assert (await plane.converge(workspace_id)).phase is Phase.ARCHIVED


@pytest.mark.parametrize("choice", [RecoverChoice.RESTORE_ARCHIVE, RecoverChoice.START_EMPTY])
async def test_files_that_are_back_are_not_given_up(plane: ControlPlane, choice: RecoverChoice) -> None:
    workspace_id = await with_lost_volume(plane)
    await recover(plane, workspace_id, choice)
    plane.write(workspace_id, "new")
    kept = await plane.converge(workspace_id)
    assert (kept.phase, kept.error_reason) == (Phase.ERROR, ErrorReason.DATA_LOST)
    assert plane.read(workspace_id) == "new"
    assert await pending(plane, workspace_id) is None
    last = (await plane.events(workspace_id))[-1]
    assert (last.kind, last.detail["choice"], last.detail["choices"]) == (
        "recovery_refused",
        choice,
        ["retry"],
    )
    await recover(plane, workspace_id, RecoverChoice.RETRY)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert plane.read(workspace_id) == "new"


async def test_an_archive_that_is_back_is_not_given_up(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    objects = dict(plane.world.objects)
    plane.world.objects.clear()
    await plane.converge(workspace_id)
    await recover(plane, workspace_id, RecoverChoice.START_EMPTY)
    plane.world.objects.update(objects)
    kept = await plane.converge(workspace_id)
    assert (kept.phase, kept.archive_key in plane.archive_keys()) == (Phase.ERROR, True)
    assert await kinds(plane, workspace_id) == ["recovery_requested", "recovery_refused"]


@pytest.mark.parametrize("silent", [Resource.CONTAINER, Resource.VOLUME])
async def test_a_choice_waits_for_a_provider_that_is_down(plane: ControlPlane, silent: Resource) -> None:
    workspace_id = await with_lost_volume(plane)
    await recover(plane, workspace_id, RecoverChoice.START_EMPTY)
    plane.world.down.add(silent)
    waiting = await plane.converge(workspace_id)
    assert (waiting.phase, waiting.archive_key is not None) == (Phase.ERROR, True)
    assert await pending(plane, workspace_id) is not None
    # The volume was only unmounted, and now it is back.
    plane.world.down.clear()
    plane.write(workspace_id, "new")
    assert (await plane.run_sweep(OBSERVE))["not_converged"] == 1
    await plane.converge(workspace_id)
    assert await kinds(plane, workspace_id) == ["recovery_requested", "recovery_refused"]
    assert plane.read(workspace_id) == "new"


async def test_an_ordinary_error_ends_during_an_outage_and_the_workspace_waits(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    await plane.want(workspace_id, DesiredState.RUNNING)
    plane.fail("instances.start", *[Transient(ErrorReason.UNREACHABLE, "not now")] * MAX_RETRY)
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.RETRY_EXCEEDED
    plane.world.down.add(Resource.CONTAINER)
    await recover(plane, workspace_id)
    waiting = await plane.converge(workspace_id)
    assert (waiting.phase, waiting.error_reason) == (Phase.STANDBY, None)
    plane.world.down.clear()
    await plane.run_sweep(OBSERVE)
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING


async def test_a_sweep_makes_up_for_a_lost_wake(plane: ControlPlane) -> None:
    workspace_id = await with_lost_volume(plane)
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE)
    assert (await plane.run_sweep(OBSERVE))["not_converged"] == 1
    await plane.client.get_workflow_handle(f"workspace-{workspace_id}").result()
    assert (await plane.snapshot(workspace_id)).phase is Phase.STANDBY
    assert (await plane.run_sweep(OBSERVE))["not_converged"] == 0


async def test_a_failed_deletion_continues(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.write(workspace_id, "precious")
    await plane.delete(workspace_id)
    plane.fail("jobs.archive", Permanent(ErrorReason.TIMEOUT, "It took too long."))
    assert (await plane.converge(workspace_id)).phase is Phase.DELETING
    await recover(plane, workspace_id)
    deleted = await plane.converge(workspace_id)
    assert deleted.phase is Phase.DELETED
    assert plane.read_archived(deleted.archive_key) == "precious"


async def test_deleting_a_workspace_ends_its_pending_recovery(plane: ControlPlane) -> None:
    workspace_id = await with_lost_volume(plane)
    await recover(plane, workspace_id, RecoverChoice.RETRY)
    await plane.delete(workspace_id)
    assert (await plane.converge(workspace_id)).phase is Phase.DELETED
    assert await kinds(plane, workspace_id) == ["recovery_requested", "recovery_refused"]
    assert (await plane.run_sweep(OBSERVE))["not_converged"] == 0


async def test_a_recovered_workspace_cannot_be_recovered_again(plane: ControlPlane) -> None:
    workspace_id = await with_lost_volume(plane)
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE)
    await plane.converge(workspace_id)
    with pytest.raises(InvalidState):
        await recover(plane, workspace_id, RecoverChoice.START_EMPTY)
