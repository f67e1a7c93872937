"""One workflow for each operation."""

from temporalio import workflow

from activities.archive import ArchiveActivities
from activities.instance import InstanceActivities
from activities.volume import VolumeActivities
from activities.workspace import WorkspaceActivities
from codehub.contracts import OperationRequest
from workflows.policies import ARCHIVE, CHANGE, COMMIT, RESTORE, START
from workflows.steps import change, update_row


@workflow.defn
class Provisioning:
    """Make an empty volume; one that exists is left alone with what it holds."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await change(VolumeActivities.provision_volume, request, policy=CHANGE)


@workflow.defn
class Restoring:
    """Restore to the end, and only then say so: until then the volume does not count."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await change(ArchiveActivities.restore_archive, request, policy=RESTORE)
        await update_row(WorkspaceActivities.mark_restored, request, policy=COMMIT)


@workflow.defn
class Starting:
    """Start the instance on its volume; one that runs is left alone. An image that is not here is pulled."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        if await change(InstanceActivities.start_instance, request, policy=START):
            # Not while it holds one of the few places for starts: a slow registry would hold up everybody's.
            await change(InstanceActivities.pull_image, request, policy=CHANGE)
            await change(InstanceActivities.start_instance, request, policy=START)


@workflow.defn
class Stopping:
    """Stop and remove the instance; its volume is not touched."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await change(InstanceActivities.stop_instance, request, policy=CHANGE)


@workflow.defn
class Archiving:
    """Upload the home, commit its key, then drop the volume: never in another order."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        key = request.archive_key
        if request.needs_upload:
            archive = await change(ArchiveActivities.upload_archive, request, policy=ARCHIVE)
            await update_row(WorkspaceActivities.commit_archive, request, archive, policy=COMMIT)
            key = archive.key
        await change(VolumeActivities.remove_archived_volume, request, key, policy=CHANGE)


@workflow.defn
class CreateEmptyArchive:
    """Upload an empty home, then commit its key."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        archive = await change(ArchiveActivities.upload_empty_archive, request, policy=ARCHIVE)
        await update_row(WorkspaceActivities.commit_archive, request, archive, policy=COMMIT)


@workflow.defn
class Deleting:
    """Container first, then volume: never in another order."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await change(InstanceActivities.stop_instance, request, policy=CHANGE)
        await change(VolumeActivities.remove_volume, request, policy=CHANGE)
