"""The collector removes unneeded archives two hours after it first saw them, and no others."""

from datetime import timedelta

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.testing import WorkflowEnvironment

from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.naming import META_SUFFIX, archive_key
from codehub.domain.states import DesiredState, ErrorReason, Phase
from testkit.fakes import FakeObject
from tests.workflows.harness import ControlPlane

pytestmark = pytest.mark.usefixtures("own_time")

GC = "ArchiveGcWorkflow"
OTHER_OP = "44444444-4444-4444-8444-444444444444"


async def archive_again(plane: ControlPlane, workspace_id: WorkspaceId) -> tuple[str, str]:
    """Run the workspace and archive it again. Return the keys before and after."""
    before = (await plane.snapshot(workspace_id)).archive_key
    await plane.want(workspace_id, DesiredState.STANDBY)
    await plane.converge(workspace_id)
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    after = (await plane.converge(workspace_id)).archive_key
    assert before is not None
    assert after is not None
    assert before != after
    return before, after


async def test_a_superseded_archive_is_removed_after_the_grace_and_the_current_one_stays(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    old, current = await archive_again(plane, workspace_id)
    assert await plane.run_sweep(GC) == {
        "protected": 1,
        "orphans": 1,
        "collected": 0,
        "aborted_uploads": 0,
        "vanished": 0,
    }
    await skipping.sleep(timedelta(hours=1, minutes=59))
    assert (await plane.run_sweep(GC))["collected"] == 0
    assert old in plane.archive_keys()
    await skipping.sleep(timedelta(minutes=2))
    assert (await plane.run_sweep(GC))["collected"] == 1
    assert plane.archive_keys() == {current}


async def test_a_deleted_workspace_keeps_its_last_archive_for_the_undelete_period(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    # The server's clock can be days ahead, so the row needs a deletion time by that clock.
    await plane.delete(workspace_id, now=await skipping.get_current_time())
    deleted = await plane.converge(workspace_id)
    assert deleted.phase is Phase.DELETED
    assert (await plane.run_sweep(GC))["orphans"] == 0
    await skipping.sleep(timedelta(days=6, hours=23))
    assert (await plane.run_sweep(GC))["orphans"] == 0
    assert deleted.archive_key in plane.archive_keys()
    await skipping.sleep(timedelta(hours=2))
    assert (await plane.run_sweep(GC))["orphans"] == 1
    await skipping.sleep(timedelta(hours=3))
    assert (await plane.run_sweep(GC))["collected"] == 1
    assert plane.archive_keys() == set()


async def test_older_archives_of_a_deleted_workspace_are_removed_after_the_grace(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    _, current = await archive_again(plane, workspace_id)
    await plane.delete(workspace_id, now=await skipping.get_current_time())
    await plane.converge(workspace_id)
    await plane.run_sweep(GC)
    await skipping.sleep(timedelta(hours=3))
    await plane.run_sweep(GC)
    assert plane.archive_keys() == {current}


async def test_a_purged_workspace_keeps_its_archives_for_the_grace_only(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    await plane.delete(workspace_id, purge=True, now=await skipping.get_current_time())
    await plane.converge(workspace_id)
    assert (await plane.run_sweep(GC))["orphans"] == 1
    await skipping.sleep(timedelta(hours=3))
    await plane.run_sweep(GC)
    assert plane.archive_keys() == set()


async def test_every_archive_of_a_workspace_in_error_is_kept(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    old, current = await archive_again(plane, workspace_id)
    await plane.run_sweep(GC)
    plane.write(workspace_id, "leftover")
    plane.lose_archive(current)
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.DATA_LOST
    await skipping.sleep(timedelta(days=1))
    assert (await plane.run_sweep(GC))["collected"] == 0
    assert old in plane.archive_keys()


@pytest.mark.parametrize("parts", [[""], [META_SUFFIX], ["", META_SUFFIX]])
async def test_an_older_archive_is_kept_while_the_current_one_is_missing(
    plane: ControlPlane, skipping: WorkflowEnvironment, parts: list[str]
) -> None:
    """It may be the last copy, and nothing has noticed the missing one yet."""
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    old, current = await archive_again(plane, workspace_id)
    await plane.run_sweep(GC)
    await skipping.sleep(timedelta(hours=3))
    for part in parts:
        del plane.world.objects[current + part]
    result = await plane.run_sweep(GC)
    assert (result["collected"], result["vanished"]) == (0, 1)
    assert old in plane.archive_keys()
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.DATA_LOST


async def test_an_unfinished_upload_without_an_owner_is_removed(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    stray = archive_key(workspace_id, OTHER_OP)
    plane.world.objects[stray] = FakeObject(b"a tar without its meta")
    await plane.run_sweep(GC)
    await skipping.sleep(timedelta(hours=3))
    await plane.run_sweep(GC)
    assert stray not in plane.archive_keys()


async def test_a_listing_that_fails_skips_the_cycle(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    old, _ = await archive_again(plane, workspace_id)
    await plane.run_sweep(GC)
    await skipping.sleep(timedelta(hours=3))
    plane.world.down.add(Resource.ARCHIVE)
    with pytest.raises(WorkflowFailureError):
        await plane.run_sweep(GC)
    assert old in plane.archive_keys()


async def test_a_missing_archive_is_noticed_by_the_collection(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    plane.world.objects.clear()
    assert (await plane.run_sweep(GC))["vanished"] == 1
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.DATA_LOST
