"""DELETING: nothing is left of the workspace but its archives, which the collector removes later."""

from temporalio import workflow

from activities.instance import InstanceActivities
from activities.volume import VolumeActivities
from codehub.contracts import OperationRequest
from workflows.policies import CHANGE
from workflows.steps import change


@workflow.defn
class Deleting:
    """Container first, then volume: never in another order."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await change(InstanceActivities.stop_instance, request, policy=CHANGE)
        await change(VolumeActivities.remove_volume, request, policy=CHANGE)
