"""ObserveWorkflow: one listing per provider finds what drifted. On a schedule, every fifteen seconds."""

from temporalio import workflow

from activities.drift import DriftActivities
from codehub.contracts import ObserveResult
from workflows.policies import SWEEP
from workflows.steps import change


@workflow.defn
class ObserveWorkflow:
    """Wake what drifted and what has not converged, and nothing else."""

    @workflow.run
    async def run(self) -> ObserveResult:
        return await change(DriftActivities.wake_what_drifted, policy=SWEEP)
