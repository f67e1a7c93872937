"""PROVISIONING: an empty home for a new workspace."""

from temporalio import workflow

from activities.volume import VolumeActivities
from codehub.contracts import OperationRequest
from workflows.policies import CHANGE
from workflows.steps import change


@workflow.defn
class Provisioning:
    """Make an empty volume; one that exists is left alone with what it holds."""

    @workflow.run
    async def run(self, request: OperationRequest) -> None:
        await change(VolumeActivities.provision_volume, request, policy=CHANGE)
