"""Volumes: make and remove homes."""

from dataclasses import dataclass

from temporalio import activity

from activities.fencing import require_current
from activities.progress import StepMonitor
from codehub.contracts import OperationRequest
from codehub.db.session import Database
from codehub.domain.conditions import ArchiveFact
from codehub.domain.failures import Permanent
from codehub.domain.states import ErrorReason
from codehub.ports import Archives, Volumes


@dataclass(frozen=True)
class VolumeActivities:
    """Each makes one idempotent change to one volume."""

    database: Database
    volumes: Volumes
    archives: Archives
    monitor: StepMonitor

    @activity.defn
    async def provision_volume(self, request: OperationRequest) -> None:
        """Make an empty home; one that exists is left alone."""
        async with self.monitor.watch("provision", request.workspace_id):
            await require_current(self.database, request)
            await self.volumes.provision(request.workspace_id)

    @activity.defn
    async def remove_archived_volume(self, request: OperationRequest, archive_key: str) -> None:
        """Give back the disk of a home whose archive answers right now; never on an earlier answer."""
        async with self.monitor.watch("remove", request.workspace_id):
            if await self.archives.look(archive_key) is not ArchiveFact.PRESENT:
                message = "The archive is gone, so the volume was kept."
                raise Permanent(ErrorReason.DATA_LOST, message)
            await require_current(self.database, request)
            await self.volumes.remove(request.workspace_id)

    @activity.defn
    async def remove_volume(self, request: OperationRequest) -> None:
        """Remove what a deletion leaves over."""
        async with self.monitor.watch("remove", request.workspace_id):
            await require_current(self.database, request)
            await self.volumes.remove(request.workspace_id)
