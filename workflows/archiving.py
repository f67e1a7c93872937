"""ARCHIVING: the home moves to S3, the disk goes back."""

from temporalio import workflow

from activities.archive import ArchiveActivities
from activities.volume import VolumeActivities
from activities.workspace import WorkspaceActivities
from codehub.contracts import OperationRequest
from workflows.policies import ARCHIVE, CHANGE, COMMIT
from workflows.steps import change, update_row


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
