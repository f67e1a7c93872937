"""Deletion: makes a last archive first, unless it is a purge; removes the container before the volume."""

import pytest

from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from tests.workflows.harness import ControlPlane


@pytest.mark.parametrize(
    ("begin", "path"),
    [
        (DesiredState.RUNNING, ["STOPPING", "ARCHIVING"]),
        (DesiredState.STANDBY, ["ARCHIVING"]),
        (DesiredState.ARCHIVED, []),
    ],
)
async def test_a_deletion_leaves_a_last_archive(
    plane: ControlPlane, begin: DesiredState, path: list[str]
) -> None:
    workspace_id = await plane.reach(begin)
    if workspace_id in plane.world.volumes:
        plane.write(workspace_id, "precious")
    before = await plane.operations(workspace_id)
    await plane.delete(workspace_id)
    deleted = await plane.converge(workspace_id)
    assert (deleted.phase, deleted.operation) == (Phase.DELETED, Operation.NONE)
    assert (await plane.operations(workspace_id))[len(before) :] == path
    if path:
        assert plane.read_archived(deleted.archive_key) == "precious"
    assert workspace_id not in plane.world.volumes


async def test_a_purge_removes_everything_without_an_archive(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    await plane.delete(workspace_id, purge=True)
    deleted = await plane.converge(workspace_id)
    assert (deleted.phase, deleted.archive_key) == (Phase.DELETED, None)
    assert (await plane.operations(workspace_id))[-1] == "DELETING"
    assert plane.archive_keys() == set()
    removed = plane.world.calls.index(("volumes.remove", workspace_id))
    assert plane.world.calls.index(("instances.stop", workspace_id)) < removed


async def test_a_broken_workspace_can_be_deleted(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    del plane.world.volumes[workspace_id]
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.DATA_LOST
    await plane.delete(workspace_id)
    assert (await plane.converge(workspace_id)).phase is Phase.DELETED
