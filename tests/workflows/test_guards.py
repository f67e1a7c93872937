"""Guards that keep an activity from doing harm when it is late or the world has changed."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import delete, update
from temporalio.testing import ActivityEnvironment

from activities.archive import ArchiveActivities
from activities.instance import InstanceActivities
from activities.observer import Observer
from activities.step_monitor import StepMonitor
from activities.volume import VolumeActivities
from activities.workspace import WorkspaceActivities
from codehub.contracts import ClaimRequest, OperationRequest, SettleRequest
from codehub.db.models import Archive, Workspace
from codehub.db.session import Database
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.images import AllowedImages
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.policy import Policy
from testkit.fakes import (
    IMAGE,
    FakeArchives,
    FakeInstances,
    FakeProgressBoard,
    FakeStorageJobs,
    FakeVolumes,
    FakeWorld,
)
from testkit.rows import NOW, add_user, add_workspace

NEW_OP = "33333333-3333-4333-8333-333333333333"
OTHER_OP = "44444444-4444-4444-8444-444444444444"


class Harness:
    """All activities over one fake world, called directly."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.world = FakeWorld()
        archives, monitor = FakeArchives(self.world), StepMonitor(FakeProgressBoard(), Policy().stall)
        volumes, instances = FakeVolumes(self.world), FakeInstances(self.world)
        self.workspace = WorkspaceActivities(database, Observer(instances, volumes, archives))
        self.instance = InstanceActivities(database, instances, Policy().allowed_images, monitor)
        self.volume = VolumeActivities(database, volumes, archives, monitor)
        self.archive = ArchiveActivities(database, FakeStorageJobs(self.world), monitor)
        self.call = ActivityEnvironment().run

    async def claimed(self, operation: Operation, desired: DesiredState) -> OperationRequest:
        """Create an observed workspace in STANDBY and claim this operation."""
        async with self.database.transaction() as session:
            owner = await add_user(session)
            workspace_id = await add_workspace(session, owner, desired_state=desired, image_ref=IMAGE)
        self.world.volumes[workspace_id] = {"notes": b"precious"}
        await self.call(self.workspace.observe, workspace_id)
        request = await self.call(self.workspace.claim, ClaimRequest(workspace_id, operation, NEW_OP))
        assert request is not None
        return request


@pytest.fixture
def harness(database: Database) -> Harness:
    return Harness(database)


async def test_a_volume_is_kept_when_the_archive_store_does_not_respond(harness: Harness) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    key = (await harness.call(harness.archive.upload_archive, request)).key
    harness.world.down.add(Resource.ARCHIVE)
    with pytest.raises(Transient):
        await harness.call(harness.volume.remove_archived_volume, request, key)
    assert harness.world.volumes[request.workspace_id] == {"notes": b"precious"}


async def test_a_volume_is_kept_when_its_archive_is_gone(harness: Harness) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    key = (await harness.call(harness.archive.upload_archive, request)).key
    harness.world.objects.clear()
    with pytest.raises(Permanent) as caught:
        await harness.call(harness.volume.remove_archived_volume, request, key)
    assert caught.value.reason is ErrorReason.DATA_LOST
    assert harness.world.volumes[request.workspace_id] == {"notes": b"precious"}


async def test_an_activity_that_outlived_its_claim_changes_nothing(harness: Harness) -> None:
    current = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    stored = await harness.call(harness.archive.upload_archive, current)
    late = replace(current, claimed_at=current.claimed_at - timedelta(seconds=1))
    for activity, *arguments in (
        (harness.instance.start_instance, late),
        (harness.instance.stop_instance, late),
        (harness.volume.provision_volume, late),
        (harness.volume.remove_volume, late),
        (harness.volume.remove_archived_volume, late, stored.key),
        (harness.archive.upload_archive, late),
        (harness.archive.upload_empty_archive, late),
        (harness.archive.restore_archive, replace(late, archive_key=stored.key)),
        (harness.workspace.commit_archive, late, stored),
        (harness.workspace.mark_restored, late),
    ):
        with pytest.raises(Permanent, match="has already ended"):
            await harness.call(activity, *arguments)
    changes = {"instances.start", "instances.stop", "volumes.provision", "volumes.remove", "jobs.restore"}
    assert not changes & {call for call, _ in harness.world.calls}


async def force(harness: Harness, request: OperationRequest, **columns: object) -> OperationRequest:
    """Change the row to a state that no plan leads to, and return a request with its claim."""
    async with harness.database.transaction() as session:
        this_one = update(Workspace).where(Workspace.id == UUID(request.workspace_id))
        await session.execute(this_one.values(**columns))
    return replace(request, operation=Operation(str(columns["operation"])))


@pytest.mark.parametrize("operation", sorted(set(Operation) - {Operation.NONE, Operation.DELETING}))
async def test_only_a_deletion_removes_a_volume_without_an_archive(
    harness: Harness, operation: Operation
) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    request = await force(harness, request, operation=operation)
    with pytest.raises(Permanent, match="kept"):
        await harness.call(harness.volume.remove_volume, request)
    assert harness.world.volumes[request.workspace_id] == {"notes": b"precious"}


@pytest.mark.parametrize("operation", sorted(set(Operation) - {Operation.NONE, Operation.ARCHIVING}))
async def test_only_archiving_removes_an_archived_volume(harness: Harness, operation: Operation) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    stored = await harness.call(harness.archive.upload_archive, request)
    await harness.call(harness.workspace.commit_archive, request, stored)
    request = await force(harness, request, operation=operation)
    with pytest.raises(Permanent, match="kept"):
        await harness.call(harness.volume.remove_archived_volume, request, stored.key)
    assert harness.world.volumes[request.workspace_id] == {"notes": b"precious"}


async def test_a_volume_is_kept_until_the_key_of_its_archive_is_committed(harness: Harness) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    stored = await harness.call(harness.archive.upload_archive, request)
    with pytest.raises(Permanent, match="kept"):
        await harness.call(harness.volume.remove_archived_volume, request, stored.key)
    assert harness.world.volumes[request.workspace_id] == {"notes": b"precious"}


DELETION = {"operation": "DELETING", "desired_state": "DELETED", "deleted_at": NOW}


async def test_a_deletion_without_a_purge_never_removes_a_home_that_is_not_archived(harness: Harness) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    request = await force(harness, request, **DELETION)
    with pytest.raises(Permanent, match="kept"):
        await harness.call(harness.volume.remove_volume, request)
    assert harness.world.volumes[request.workspace_id] == {"notes": b"precious"}


async def test_a_deletion_removes_a_leftover_only_while_its_archive_exists(harness: Harness) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    stored = await harness.call(harness.archive.upload_archive, request)
    await harness.call(harness.workspace.commit_archive, request, stored)
    request = await force(harness, request, **DELETION)
    kept = dict(harness.world.objects)
    harness.world.objects.clear()
    with pytest.raises(Permanent, match="kept"):
        await harness.call(harness.volume.remove_volume, request)
    harness.world.objects.update(kept)
    harness.world.down.add(Resource.ARCHIVE)
    with pytest.raises(Transient):
        await harness.call(harness.volume.remove_volume, request)
    assert harness.world.volumes[request.workspace_id] == {"notes": b"precious"}
    harness.world.down.clear()
    for _ in range(2):
        await harness.call(harness.volume.remove_volume, request)
        assert request.workspace_id not in harness.world.volumes


async def test_a_purge_removes_what_exists(harness: Harness) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    request = await force(harness, request, **DELETION, purge=True)
    harness.world.down.add(Resource.ARCHIVE)
    await harness.call(harness.volume.remove_volume, request)
    assert request.workspace_id not in harness.world.volumes


async def test_an_image_that_is_no_longer_allowed_does_not_start_and_what_runs_is_left_alone(
    harness: Harness,
) -> None:
    request = await harness.claimed(Operation.STARTING, DesiredState.RUNNING)
    strict = replace(harness.instance, allowed_images=AllowedImages(("ours",)))
    for step in (strict.start_instance, strict.pull_image):
        with pytest.raises(Permanent, match="is not allowed\\. Ask an administrator") as caught:
            await harness.call(step, request)
        assert caught.value.reason is ErrorReason.IMAGE_PULL_FAILED
    assert harness.world.instances == {}
    await harness.call(harness.instance.start_instance, request)
    # Only a start is refused; nobody looks at the list again while the IDE runs.
    await harness.call(harness.workspace.observe, request.workspace_id)
    assert list(harness.world.instances) == [request.workspace_id]


async def test_claiming_twice_is_one_claim(harness: Harness) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    again = await harness.call(
        harness.workspace.claim, ClaimRequest(request.workspace_id, Operation.ARCHIVING, OTHER_OP)
    )
    assert again == request


async def test_nothing_is_claimed_after_a_person_changed_the_desired_state(
    harness: Harness, database: Database
) -> None:
    async with database.transaction() as session:
        workspace_id = await add_workspace(session, await add_user(session), desired_state="STANDBY")
    harness.world.volumes[workspace_id] = {}
    await harness.call(harness.workspace.observe, workspace_id)
    refused = await harness.call(
        harness.workspace.claim, ClaimRequest(workspace_id, Operation.STARTING, NEW_OP)
    )
    assert refused is None
    snapshot = await harness.call(harness.workspace.observe, workspace_id)
    assert snapshot is not None
    assert snapshot.operation is Operation.NONE


async def test_committing_twice_is_one_commit(harness: Harness) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    stored = await harness.call(harness.archive.upload_archive, request)
    for _ in range(2):
        await harness.call(harness.workspace.commit_archive, request, stored)
    snapshot = await harness.call(harness.workspace.observe, request.workspace_id)
    assert snapshot is not None
    assert (snapshot.archive_key, snapshot.phase) == (stored.key, Phase.ARCHIVED)


async def test_nothing_is_done_for_a_missing_workspace(harness: Harness) -> None:
    ghost = WorkspaceId("99999999-9999-4999-8999-999999999999")
    assert await harness.call(harness.workspace.observe, ghost) is None
    assert (
        await harness.call(harness.workspace.claim, ClaimRequest(ghost, Operation.STARTING, NEW_OP)) is None
    )


async def restorable(harness: Harness) -> OperationRequest:
    """Create a workspace with an archived home and claim its restore."""
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    stored = await harness.call(harness.archive.upload_archive, request)
    await harness.call(harness.workspace.commit_archive, request, stored)
    await harness.call(harness.volume.remove_archived_volume, request, stored.key)
    await harness.call(harness.workspace.settle, SettleRequest(request.workspace_id, 0))
    async with harness.database.transaction() as session:
        this_one = update(Workspace).where(Workspace.id == UUID(request.workspace_id))
        await session.execute(this_one.values(desired_state="STANDBY"))
    claim = ClaimRequest(request.workspace_id, Operation.RESTORING, OTHER_OP)
    restoring = await harness.call(harness.workspace.claim, claim)
    assert restoring is not None
    return restoring


async def test_an_archive_replaced_together_with_its_meta_is_not_restored(harness: Harness) -> None:
    request = await restorable(harness)
    harness.world.store_home(request.archive_key or "", {"notes": b"planted"})
    with pytest.raises(Permanent) as caught:
        await harness.call(harness.archive.restore_archive, request)
    assert caught.value.reason is ErrorReason.ARCHIVE_CORRUPTED
    assert harness.world.volumes.get(request.workspace_id) != {"notes": b"planted"}


async def test_an_unrecorded_archive_is_restored_by_its_meta_alone(harness: Harness) -> None:
    request = await restorable(harness)
    async with harness.database.transaction() as session:
        await session.execute(delete(Archive))
    await harness.call(harness.archive.restore_archive, request)
    assert harness.world.volumes[request.workspace_id] == {"notes": b"precious"}


async def test_an_incomplete_record_is_compared_as_far_as_it_goes(harness: Harness) -> None:
    request = await restorable(harness)
    async with harness.database.transaction() as session:
        await session.execute(update(Archive).values(sha256=None))
    await harness.call(harness.archive.restore_archive, request)
    harness.world.store_home(request.archive_key or "", {"notes": b"planted and longer"})
    with pytest.raises(Permanent, match="recorded"):
        await harness.call(harness.archive.restore_archive, request)


async def test_a_restore_without_a_key_is_lost_data(harness: Harness) -> None:
    request = await harness.claimed(Operation.ARCHIVING, DesiredState.ARCHIVED)
    with pytest.raises(Permanent) as caught:
        await harness.call(harness.archive.restore_archive, replace(request, archive_key=None))
    assert caught.value.reason is ErrorReason.DATA_LOST
