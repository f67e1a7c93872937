"""Activities that create and remove volumes."""

from dataclasses import dataclass

from temporalio import activity

from activities.fencing import load_current, require_current
from activities.step_monitor import StepMonitor
from codehub.contracts import OperationRequest
from codehub.db.session import Database
from codehub.domain.conditions import ArchiveFact, Snapshot
from codehub.domain.deletion import may_remove_archived_volume, may_remove_volume
from codehub.domain.failures import Permanent
from codehub.domain.states import ErrorReason
from codehub.ports import Archives, Volumes


@dataclass(frozen=True)
class VolumeActivities:
    """Each activity makes one idempotent change to one volume."""

    database: Database
    volumes: Volumes
    archives: Archives
    monitor: StepMonitor

    @activity.defn
    async def provision_volume(self, request: OperationRequest) -> None:
        """Create an empty home; keep an existing one."""
        async with self.monitor.watch("provision", request.workspace_id):
            await require_current(self.database, request)
            await self.volumes.provision(request.workspace_id)

    @activity.defn
    async def remove_archived_volume(self, request: OperationRequest, archive_key: str) -> None:
        """Remove the volume of an archived home. Check the archive right before, not earlier."""
        async with self.monitor.watch("remove", request.workspace_id):
            if await self.archives.observe(archive_key) is not ArchiveFact.PRESENT:
                message = "The archive is gone, so the volume was kept."
                raise Permanent(ErrorReason.DATA_LOST, message)
            if not may_remove_archived_volume(await self._load(request), archive_key):
                message = f"{request.operation} has not committed this archive, so the volume was kept."
                raise Permanent(ErrorReason.ACTION_FAILED, message)
            await self.volumes.remove(request.workspace_id)

    @activity.defn
    async def remove_volume(self, request: OperationRequest) -> None:
        """Remove the volume in a purge, or what a deletion leaves over."""
        async with self.monitor.watch("remove", request.workspace_id):
            row = await self._load(request)
            # A purge gives up the files, so it does not wait for a store that is down.
            archive = ArchiveFact.UNREACHABLE if row.purge else await self.archives.observe(row.archive_key)
            # Load the row again, because the store may have taken long to respond.
            if not may_remove_volume(await self._load(request), archive):
                message = "The home has no readable archive, so the volume was kept; a purge gives it up."
                raise Permanent(ErrorReason.ACTION_FAILED, message)
            await self.volumes.remove(request.workspace_id)

    async def _load(self, request: OperationRequest) -> Snapshot:
        """Return the row. Raise Permanent unless this claim is still current."""
        async with self.database.transaction() as session:
            return await load_current(session, request)
