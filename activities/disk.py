"""The disk sweep: measures a few homes at a time."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio import activity

from activities.step_monitor import heartbeats
from activities.sweep_time import sweep_time
from codehub.clock import Clock, utc_now
from codehub.contracts import DiskResult, SweepRequest
from codehub.db.disk_usage import due_for_measurement, load_disk, store_measurement
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.disk import DiskUsage, disk_level, effective_limit
from codehub.domain.failures import Failure
from codehub.domain.limits import RunningLimits
from codehub.ports import Volumes

# A running workspace is measured this often; a stopped one once, because it does not change.
INTERVAL = timedelta(minutes=10)
BATCH = 20
# Reading a home keeps a core and the disk busy, at low priority.
SECONDS_PER_HOME = 30.0
SECONDS_PER_SWEEP = 45.0


@dataclass(frozen=True)
class DiskActivities:
    """Measures homes. It stops nothing: the limit counts at the next start."""

    database: Database
    volumes: Volumes
    limits: RunningLimits
    clock: Clock = utc_now

    @activity.defn
    async def measure_homes(self, request: SweepRequest) -> DiskResult:
        """Measure the homes whose turn it is, as many as the time allows."""
        now = sweep_time(request, self.clock)
        deadline = time.monotonic() + SECONDS_PER_SWEEP
        measured = 0
        async with heartbeats("measure homes"):
            async with self.database.transaction() as session:
                due = await due_for_measurement(session, now, INTERVAL, BATCH)
            for workspace_id in due:
                if time.monotonic() > deadline:
                    break
                measured += await self._measure(workspace_id, self.clock())
        return DiskResult(measured)

    async def _measure(self, workspace_id: WorkspaceId, began: datetime) -> bool:
        try:
            found = await self.volumes.measure(workspace_id, SECONDS_PER_HOME)
        except Failure as failure:
            activity.logger.warning("cannot measure %s: %s", workspace_id, failure)
            return False
        if found is None:
            return False
        await self._store(workspace_id, DiskUsage(found.used_bytes, began, found.complete))
        return True

    async def _store(self, workspace_id: WorkspaceId, usage: DiskUsage) -> None:
        async with self.database.transaction() as session:
            before = await load_disk(session, workspace_id)
            if before is None:
                return
            last_bytes, own_limit = before
            limit = effective_limit(own_limit, self.limits.disk_bytes)
            is_new = disk_level(usage.used_bytes, limit) is not disk_level(last_bytes or 0, limit)
            await store_measurement(session, workspace_id, usage, announce=is_new)
