"""STOPPING: compute goes back, the home stays."""

from temporalio import workflow

from activities.instance import InstanceActivities
from codehub.contracts import OperationRequest
from workflows.policies import CHANGE
from workflows.steps import change


@workflow.defn
class Stopping:
    """Stop and remove the instance; its volume is not touched."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await change(InstanceActivities.stop_instance, request, policy=CHANGE)
