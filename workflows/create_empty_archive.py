"""CREATE_EMPTY_ARCHIVE: a fresh workspace is parked before it was ever used."""

from temporalio import workflow

from activities.archive import ArchiveActivities
from activities.workspace import WorkspaceActivities
from codehub.contracts import OperationRequest
from workflows.policies import ARCHIVE, COMMIT
from workflows.steps import change, update_row


@workflow.defn
class CreateEmptyArchive:
    """Upload an empty home, then commit its key."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        archive = await change(ArchiveActivities.upload_empty_archive, request, policy=ARCHIVE)
        await update_row(WorkspaceActivities.commit_archive, request, archive, policy=COMMIT)
