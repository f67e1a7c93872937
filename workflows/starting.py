"""STARTING: the IDE runs and takes traffic."""

from temporalio import workflow

from activities.instance import InstanceActivities
from codehub.contracts import OperationRequest
from workflows.policies import CHANGE, START
from workflows.steps import change


@workflow.defn
class Starting:
    """Start the instance on its volume; one that runs is left alone. An image that is not here is pulled."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        if await change(InstanceActivities.start_instance, request, policy=START):
            # Not while it holds one of the few places for starts: a slow registry would hold up everybody's.
            await change(InstanceActivities.pull_image, request, policy=CHANGE)
            await change(InstanceActivities.start_instance, request, policy=START)
