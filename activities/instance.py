"""Activities that start and stop IDEs."""

from dataclasses import dataclass

from temporalio import activity

from activities.fencing import require_current
from activities.step_monitor import StepMonitor
from codehub.contracts import OperationRequest
from codehub.db.session import Database
from codehub.ports import ImageMissing, InstanceRequest, Instances


@dataclass(frozen=True)
class InstanceActivities:
    """Each activity makes one idempotent change to one instance."""

    database: Database
    instances: Instances
    monitor: StepMonitor

    @activity.defn
    async def start_instance(self, request: OperationRequest) -> bool:
        """Return False when the instance takes traffic, or True at once if its image must be pulled first."""
        async with self.monitor.watch("start", request.workspace_id) as report:
            await require_current(self.database, request)
            try:
                await self.instances.start(InstanceRequest(request.workspace_id, request.image_ref), report)
            except ImageMissing:
                return True
        return False

    @activity.defn
    async def pull_image(self, request: OperationRequest) -> None:
        """Return when the image is available."""
        async with self.monitor.watch("pulling the image", request.workspace_id) as report:
            await require_current(self.database, request)
            await self.instances.pull(request.image_ref, report)

    @activity.defn
    async def stop_instance(self, request: OperationRequest) -> None:
        """Return when the instance is gone."""
        async with self.monitor.watch("stop", request.workspace_id):
            await require_current(self.database, request)
            await self.instances.stop(request.workspace_id)
