"""RESTORING: the home comes back from its archive."""

from temporalio import workflow

from activities.archive import ArchiveActivities
from activities.workspace import WorkspaceActivities
from codehub.contracts import OperationRequest
from workflows.policies import COMMIT, RESTORE
from workflows.steps import change, update_row


@workflow.defn
class Restoring:
    """Restore to the end, and only then say so: until then the volume does not count."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await change(ArchiveActivities.restore_archive, request, policy=RESTORE)
        await update_row(WorkspaceActivities.mark_restored, request, policy=COMMIT)
