"""RetentionWorkflow: rows of what is over are removed after a while. On a schedule, every day."""

from temporalio import workflow

from activities.retention import RetentionActivities
from codehub.contracts import RetentionResult, SweepRequest
from workflows.policies import SWEEP
from workflows.steps import change


@workflow.defn
class RetentionWorkflow:
    """Workspaces before archives: the record of a workspace's archive outlives the workspace."""

    @workflow.run
    async def run(self) -> RetentionResult:
        request = SweepRequest(workflow.now())
        return RetentionResult(
            workspaces=await change(RetentionActivities.remove_deleted_workspaces, request, policy=SWEEP),
            archives=await change(RetentionActivities.remove_collected_archives, request, policy=SWEEP),
            events=await change(RetentionActivities.remove_old_events, request, policy=SWEEP),
            sessions=await change(RetentionActivities.remove_ended_sessions, request, policy=SWEEP),
            tokens=await change(RetentionActivities.remove_ended_tokens, request, policy=SWEEP),
            usage=await change(RetentionActivities.remove_old_usage, request, policy=SWEEP),
        )
