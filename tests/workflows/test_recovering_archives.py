"""After a damaged archive, a person can go back to another one, and no archive is removed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import select
from temporalio.testing import WorkflowEnvironment

from codehub.db.archive_views import list_other_archives
from codehub.db.archives import mark_collected
from codehub.db.models import Archive
from codehub.domain.conditions import Resource, Snapshot, WorkspaceId
from codehub.domain.naming import parse_archive_key
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.services.errors import InvalidState
from codehub.services.recovery import request_recovery
from codehub.services.requests import RequestContext
from tests.workflows.harness import LIMITS, ControlPlane

GC = "ArchiveGcWorkflow"
OBSERVE = "ObserveWorkflow"


def op_id_of(key: str | None) -> UUID:
    name = parse_archive_key(key or "")
    assert name is not None
    return UUID(name.archive_op_id)


async def recover(
    plane: ControlPlane, workspace_id: WorkspaceId, choice: RecoverChoice, key: str | None = None
) -> None:
    await request_recovery(
        plane.database,
        workspace_id,
        choice,
        archive=op_id_of(key) if key else None,
        context=RequestContext("test", LIMITS, datetime.now(UTC)),
    )


async def archive_home(plane: ControlPlane, workspace_id: WorkspaceId, text: str) -> str:
    """Write into the home and archive it. Return the key of the archive."""
    await plane.want(workspace_id, DesiredState.STANDBY)
    await plane.converge(workspace_id)
    plane.write(workspace_id, text)
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    key = (await plane.converge(workspace_id)).archive_key
    assert key is not None
    return key


def damage(plane: ControlPlane, key: str) -> None:
    plane.world.objects[key] = replace(plane.world.objects[key], content=b"{}garbage")


async def with_damaged_archive(plane: ControlPlane) -> tuple[WorkspaceId, str, str]:
    """Create a workspace in error over a damaged archive. Return the older and the damaged key."""
    workspace_id = await plane.reach(DesiredState.STANDBY)
    old = await archive_home(plane, workspace_id, "old")
    new = await archive_home(plane, workspace_id, "new")
    damage(plane, new)
    assert (await start_workspace(plane, workspace_id)).error_reason is ErrorReason.ARCHIVE_CORRUPTED
    return workspace_id, old, new


async def start_workspace(plane: ControlPlane, workspace_id: WorkspaceId) -> Snapshot:
    await plane.want(workspace_id, DesiredState.STANDBY)
    return await plane.converge(workspace_id)


async def others(plane: ControlPlane, workspace_id: WorkspaceId) -> list[str]:
    async with plane.database.transaction() as session:
        return [each.key for each in await list_other_archives(session, workspace_id)]


async def test_an_older_archive_is_restored_instead_of_the_damaged_one(plane: ControlPlane) -> None:
    workspace_id, old, new = await with_damaged_archive(plane)
    assert old in await others(plane, workspace_id)
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE, old)
    recovered = await plane.converge(workspace_id)
    assert (recovered.phase, recovered.archive_key) == (Phase.STANDBY, old)
    assert plane.read(workspace_id) == "old"
    [asked, done] = [each for each in await plane.events(workspace_id) if each.kind.startswith("recover")]
    assert (asked.detail["archive"], done.detail["archive"]) == (old, old)
    assert new in plane.archive_keys()


async def test_an_older_archive_can_be_chosen_for_a_lost_volume(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    old = await archive_home(plane, workspace_id, "old")
    await archive_home(plane, workspace_id, "new")
    await start_workspace(plane, workspace_id)
    del plane.world.volumes[workspace_id]
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.DATA_LOST
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE, old)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert plane.read(workspace_id) == "old"


async def test_a_damaged_archive_that_was_repaired_is_restored_by_retry(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    key = await archive_home(plane, workspace_id, "new")
    intact = plane.world.objects[key]
    damage(plane, key)
    assert (await start_workspace(plane, workspace_id)).error_reason is ErrorReason.ARCHIVE_CORRUPTED
    plane.world.objects[key] = intact
    await recover(plane, workspace_id, RecoverChoice.RETRY)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert plane.read(workspace_id) == "new"


async def test_start_empty_gives_an_empty_home_though_the_disk_holds_some_of_the_files(
    plane: ControlPlane,
) -> None:
    workspace_id, _, _ = await with_damaged_archive(plane)
    plane.write(workspace_id, "half of it")
    await recover(plane, workspace_id, RecoverChoice.START_EMPTY)
    recovered = await plane.converge(workspace_id)
    assert recovered.phase is Phase.STANDBY
    assert plane.world.volumes[workspace_id] == {}
    assert (await plane.operations(workspace_id))[-2:] == [
        Operation.CREATE_EMPTY_ARCHIVE,
        Operation.RESTORING,
    ]


async def test_use_disk_keeps_what_is_left_on_the_disk(plane: ControlPlane) -> None:
    workspace_id, _, _ = await with_damaged_archive(plane)
    plane.write(workspace_id, "half of it")
    await recover(plane, workspace_id, RecoverChoice.USE_DISK)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert plane.read(workspace_id) == "half of it"


async def test_a_named_archive_that_is_gone_is_refused(plane: ControlPlane) -> None:
    workspace_id, old, new = await with_damaged_archive(plane)
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE, old)
    plane.lose_archive(old)
    kept = await plane.converge(workspace_id)
    assert (kept.phase, kept.error_reason) == (Phase.ERROR, ErrorReason.ARCHIVE_CORRUPTED)
    assert kept.archive_key == new
    assert (await plane.events(workspace_id))[-1].kind == "recovery_refused"


async def test_a_named_archive_that_the_collector_removes_is_refused(plane: ControlPlane) -> None:
    workspace_id, old, _ = await with_damaged_archive(plane)
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE, old)
    async with plane.database.transaction() as session:
        await mark_collected(session, old, datetime.now(UTC))
    assert (await plane.converge(workspace_id)).phase is Phase.ERROR
    assert (await plane.events(workspace_id))[-1].kind == "recovery_refused"
    with pytest.raises(InvalidState, match="not possible here"):
        await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE, old)


async def test_a_named_archive_is_waited_for_while_its_store_is_down(plane: ControlPlane) -> None:
    workspace_id, old, _ = await with_damaged_archive(plane)
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE, old)
    plane.world.down.add(Resource.ARCHIVE)
    assert (await plane.converge(workspace_id)).phase is Phase.ERROR
    plane.world.down.clear()
    assert (await plane.run_sweep(OBSERVE))["not_converged"] == 1
    assert (await plane.converge(workspace_id)).archive_key == old


async def test_another_archive_can_be_chosen_if_the_older_one_is_damaged_too(plane: ControlPlane) -> None:
    workspace_id, old, new = await with_damaged_archive(plane)
    intact = plane.world.objects[old]
    damage(plane, old)
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE, old)
    assert (await plane.converge(workspace_id)).error_reason is ErrorReason.ARCHIVE_CORRUPTED
    assert new in await others(plane, workspace_id)
    plane.world.objects[old] = intact
    await recover(plane, workspace_id, RecoverChoice.RETRY)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert plane.read(workspace_id) == "old"


@pytest.mark.usefixtures("own_time")
@pytest.mark.parametrize("choice", [RecoverChoice.RESTORE_ARCHIVE, RecoverChoice.START_EMPTY])
async def test_no_archive_is_collected_after_a_choice_until_the_workspace_is_deleted(
    plane: ControlPlane, skipping: WorkflowEnvironment, choice: RecoverChoice
) -> None:
    workspace_id, old, new = await with_damaged_archive(plane)
    before = plane.archive_keys()
    assert {old, new} <= before
    await recover(plane, workspace_id, choice, old if choice is RecoverChoice.RESTORE_ARCHIVE else None)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    for _ in range(2):
        await plane.run_sweep(GC)
        await skipping.sleep(timedelta(hours=3))
    assert before <= plane.archive_keys()
    await plane.delete(workspace_id, purge=True)
    assert (await plane.converge(workspace_id)).phase is Phase.DELETED
    for _ in range(2):
        await plane.run_sweep(GC)
        await skipping.sleep(timedelta(hours=3))
    assert plane.archive_keys() == set()


async def test_an_unrecorded_archive_of_an_older_version_is_kept_too(plane: ControlPlane) -> None:
    workspace_id, old, new = await with_damaged_archive(plane)
    async with plane.database.transaction() as session:
        for row in await session.scalars(select(Archive).where(Archive.key == new)):
            await session.delete(row)
    await recover(plane, workspace_id, RecoverChoice.RESTORE_ARCHIVE, old)
    await plane.converge(workspace_id)
    async with plane.database.transaction() as session:
        kept = await session.scalars(select(Archive.key).where(Archive.given_up_at.is_not(None)))
        assert new in set(kept)
