"""Instances: start and stop the IDE."""

from dataclasses import dataclass

from temporalio import activity

from activities.fencing import require_current
from activities.progress import visible_progress
from codehub.contracts import OperationRequest
from codehub.db.session import Database
from codehub.ports import InstanceRequest, Instances, ProgressBoard


@dataclass(frozen=True)
class InstanceActivities:
    """Each makes one idempotent change to one instance."""

    database: Database
    instances: Instances
    board: ProgressBoard

    @activity.defn
    async def start_instance(self, request: OperationRequest) -> None:
        """Return once it takes traffic."""
        async with visible_progress("start", self.board, request.workspace_id) as report:
            await require_current(self.database, request)
            await self.instances.start(InstanceRequest(request.workspace_id, request.image_ref), report)

    @activity.defn
    async def stop_instance(self, request: OperationRequest) -> None:
        """Return once every trace of it is gone."""
        async with visible_progress("stop", self.board, request.workspace_id):
            await require_current(self.database, request)
            await self.instances.stop(request.workspace_id)
