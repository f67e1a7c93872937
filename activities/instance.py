"""Instances: start and stop the IDE."""

from dataclasses import dataclass

from temporalio import activity

from activities.fencing import require_current
from activities.heartbeat import heartbeats
from codehub.contracts import OperationRequest
from codehub.db.session import Database
from codehub.ports import InstanceRequest, Instances


@dataclass(frozen=True)
class InstanceActivities:
    """Each makes one idempotent change to one instance."""

    database: Database
    instances: Instances

    @activity.defn
    async def start_instance(self, request: OperationRequest) -> None:
        """Return once it takes traffic."""
        async with heartbeats("start") as report:
            await require_current(self.database, request)
            await self.instances.start(InstanceRequest(request.workspace_id, request.image_ref), report)

    @activity.defn
    async def stop_instance(self, request: OperationRequest) -> None:
        """Return once every trace of it is gone."""
        async with heartbeats("stop"):
            await require_current(self.database, request)
            await self.instances.stop(request.workspace_id)
