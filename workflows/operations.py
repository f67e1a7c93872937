"""One workflow for each operation."""

from temporalio import workflow

from activities.archive import ArchiveActivities
from activities.instance import InstanceActivities
from activities.volume import VolumeActivities
from activities.workspace import WorkspaceActivities
from codehub.contracts import OperationRequest
from workflows.policies import ARCHIVE, CHANGE, COMMIT, RESTORE, START
from workflows.steps import run_local_step, run_step


@workflow.defn
class Provisioning:
    """Create an empty volume, or keep an existing one."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await run_step(VolumeActivities.provision_volume, request, policy=CHANGE)


@workflow.defn
class Restoring:
    """Restore the archive, then mark the volume as complete: before that it does not count."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await run_step(ArchiveActivities.restore_archive, request, policy=RESTORE)
        await run_local_step(WorkspaceActivities.mark_restored, request, policy=COMMIT)


@workflow.defn
class Starting:
    """Start the instance, or keep a running one. Pull a missing image."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        if await run_step(InstanceActivities.start_instance, request, policy=START):
            # Pull in another queue, so that a slow registry does not block other starts.
            await run_step(InstanceActivities.pull_image, request, policy=CHANGE)
            await run_step(InstanceActivities.start_instance, request, policy=START)


@workflow.defn
class Stopping:
    """Stop and remove the instance; keep its volume."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await run_step(InstanceActivities.stop_instance, request, policy=CHANGE)


@workflow.defn
class Archiving:
    """Upload the home, commit its key, then remove the volume: never in another order."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        key = request.archive_key
        if request.needs_upload:
            archive = await run_step(ArchiveActivities.upload_archive, request, policy=ARCHIVE)
            await run_local_step(WorkspaceActivities.commit_archive, request, archive, policy=COMMIT)
            key = archive.key
        await run_step(VolumeActivities.remove_archived_volume, request, key, policy=CHANGE)


@workflow.defn
class CreateEmptyArchive:
    """Upload an empty home, then commit its key."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        archive = await run_step(ArchiveActivities.upload_empty_archive, request, policy=ARCHIVE)
        await run_local_step(WorkspaceActivities.commit_archive, request, archive, policy=COMMIT)


@workflow.defn
class Deleting:
    """Remove the container, then the volume: never in another order."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await run_step(InstanceActivities.stop_instance, request, policy=CHANGE)
        await run_step(VolumeActivities.remove_volume, request, policy=CHANGE)
