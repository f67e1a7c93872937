"""STARTING: the IDE runs and takes traffic."""

from temporalio import workflow

from activities.instance import InstanceActivities
from codehub.contracts import OperationRequest
from workflows.policies import CHANGE
from workflows.steps import change


@workflow.defn
class Starting:
    """Start the instance on its volume; one that runs is left alone."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await change(InstanceActivities.start_instance, request, policy=CHANGE)
