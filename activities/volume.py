"""Volumes: make and remove homes."""

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
            if await self.archives.observe(archive_key) is not ArchiveFact.PRESENT:
                message = "The archive is gone, so the volume was kept."
                raise Permanent(ErrorReason.DATA_LOST, message)
            if not may_remove_archived_volume(await self._load(request), archive_key):
                message = f"{request.operation} has not committed this archive, so the volume was kept."
                raise Permanent(ErrorReason.ACTION_FAILED, message)
            await self.volumes.remove(request.workspace_id)

    @activity.defn
    async def remove_volume(self, request: OperationRequest) -> None:
        """Remove the volume in a purge, or what else a deletion leaves over."""
        async with self.monitor.watch("remove", request.workspace_id):
            row = await self._load(request)
            # A purge gives up the files, so it does not wait for a store that is silent.
            archive = ArchiveFact.UNREACHABLE if row.purge else await self.archives.observe(row.archive_key)
            # Loaded again, because the store may have taken long to answer.
            if not may_remove_volume(await self._load(request), archive):
                message = "The home has no readable archive, so the volume was kept; a purge gives it up."
                raise Permanent(ErrorReason.ACTION_FAILED, message)
            await self.volumes.remove(request.workspace_id)

    async def _load(self, request: OperationRequest) -> Snapshot:
        """The row, if this very claim is still the one under way."""
        async with self.database.transaction() as session:
            return await load_current(session, request)
