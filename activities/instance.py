"""Activities that start and stop IDEs."""

from dataclasses import dataclass

from temporalio import activity

from activities.fencing import require_current
from activities.step_monitor import StepMonitor
from codehub.contracts import OperationRequest
from codehub.db.session import Database
from codehub.domain.failures import Permanent
from codehub.domain.images import AllowedImages
from codehub.domain.states import ErrorReason
from codehub.ports import ImageMissing, InstanceRequest, Instances


@dataclass(frozen=True)
class InstanceActivities:
    """Each activity makes one idempotent change to one instance."""

    database: Database
    instances: Instances
    allowed_images: AllowedImages
    monitor: StepMonitor

    @activity.defn
    async def start_instance(self, request: OperationRequest) -> bool:
        """Return False when the instance takes traffic, or True at once if its image must be pulled first."""
        async with self.monitor.watch("start", request.workspace_id) as report:
            await require_current(self.database, request)
            self._require_allowed(request.image_ref)
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
            self._require_allowed(request.image_ref)
            await self.instances.pull(request.image_ref, report)

    def _require_allowed(self, image_ref: str) -> None:
        """Check again at each start: the list may have changed since the workspace was created."""
        if not self.allowed_images.includes(image_ref):
            message = (
                f"The image {image_ref} is not allowed. Ask an administrator to allow it "
                "(CODEHUB_WORKSPACES_ALLOWED_IMAGES), then recover."
            )
            raise Permanent(ErrorReason.IMAGE_PULL_FAILED, message)

    @activity.defn
    async def stop_instance(self, request: OperationRequest) -> None:
        """Return when the instance is gone."""
        async with self.monitor.watch("stop", request.workspace_id):
            await require_current(self.database, request)
            await self.instances.stop(request.workspace_id)
