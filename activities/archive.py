"""Activities that archive and restore homes with storage jobs."""

from dataclasses import dataclass

from temporalio import activity

from activities.fencing import require_current
from activities.step_monitor import StepMonitor
from codehub.contracts import OperationRequest
from codehub.db.archives import load_expected
from codehub.db.session import Database
from codehub.domain import naming
from codehub.domain.failures import Permanent
from codehub.domain.states import ErrorReason
from codehub.ports import ExpectedArchive, StorageJobs, StoredArchive


@dataclass(frozen=True)
class ArchiveActivities:
    """After a lost worker, the job runs again with the same key. A cancelled job ends."""

    database: Database
    jobs: StorageJobs
    monitor: StepMonitor

    @activity.defn
    async def upload_archive(self, request: OperationRequest) -> StoredArchive:
        """Upload the home under the key of this claim. Skip it if the archive is already committed."""
        async with self.monitor.watch("upload", request.workspace_id) as report:
            await require_current(self.database, request)
            return await self.jobs.archive(request.workspace_id, _own_key(request), report)

    @activity.defn
    async def upload_empty_archive(self, request: OperationRequest) -> StoredArchive:
        """Upload an empty home, so that a new workspace can be archived."""
        async with self.monitor.watch("upload", request.workspace_id) as report:
            await require_current(self.database, request)
            return await self.jobs.create_empty(request.workspace_id, _own_key(request), report)

    @activity.defn
    async def restore_archive(self, request: OperationRequest) -> None:
        """Restore the archive into the volume, from the beginning."""
        if request.archive_key is None:
            raise Permanent(ErrorReason.DATA_LOST, "There is no archive to restore.")
        async with self.monitor.watch("restore", request.workspace_id) as report:
            expected = await self._load_expected(request.archive_key)
            await require_current(self.database, request)
            await self.jobs.restore(request.workspace_id, request.archive_key, report, expected)

    async def _load_expected(self, key: str) -> ExpectedArchive:
        async with self.database.transaction() as session:
            return await load_expected(session, key)


def _own_key(request: OperationRequest) -> str:
    return naming.archive_key(request.workspace_id, request.archive_op_id or "")
