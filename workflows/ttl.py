"""TtlWorkflow: unused workspaces give back compute, later their disk. On a schedule, every minute."""

from temporalio import workflow

from activities.idle import IdleActivities
from codehub.contracts import SweepRequest, TtlResult
from workflows.policies import SWEEP
from workflows.steps import change


@workflow.defn
class TtlWorkflow:
    """Store who used what first, so that nobody is stopped on old news."""

    @workflow.run
    async def run(self) -> TtlResult:
        request = SweepRequest(workflow.now())
        used = await change(IdleActivities.store_last_access, request, policy=SWEEP)
        stopped = await change(IdleActivities.stop_unused, request, policy=SWEEP)
        archived = await change(IdleActivities.archive_unused, request, policy=SWEEP)
        return TtlResult(used, stopped, archived)
