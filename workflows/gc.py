"""ArchiveGcWorkflow: archives that nothing needs go after their grace. On a schedule, every four hours."""

from temporalio import workflow

from activities.garbage import GarbageActivities
from codehub.contracts import GcResult, SweepRequest
from workflows.policies import SWEEP
from workflows.steps import change


@workflow.defn
class ArchiveGcWorkflow:
    """One collection; a listing or a query that fails skips it."""

    @workflow.run
    async def run(self) -> GcResult:
        return await change(GarbageActivities.collect, SweepRequest(workflow.now()), policy=SWEEP)
