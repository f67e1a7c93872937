"""The retention sweep: removes old rows in small batches."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio import activity

from activities.step_monitor import heartbeats
from activities.sweep_time import sweep_time
from codehub.clock import Clock, utc_now
from codehub.contracts import SweepRequest
from codehub.db import retention
from codehub.db.archives import mark_collected, mark_orphans
from codehub.db.retention import RemoveOld, list_uncollected
from codehub.db.session import Database
from codehub.domain.conditions import ArchiveFact
from codehub.domain.failures import Failure
from codehub.domain.naming import parse_archive_key
from codehub.domain.retention import RetentionPeriods
from codehub.ports import Archives

BATCH = 500
# At most half a million rows of each kind per run; the next run continues.
MOST_BATCHES = 1000


@dataclass(frozen=True)
class RetentionActivities:
    """One activity for each kind of row. Each can be interrupted and run again."""

    database: Database
    archives: Archives
    periods: RetentionPeriods
    undelete_period: timedelta
    clock: Clock = utc_now

    @activity.defn
    async def remove_deleted_workspaces(self, request: SweepRequest) -> int:
        """Remove deleted workspaces whose archives are gone and whose undelete period is over."""
        now = sweep_time(request, self.clock)
        before = now - max(self.periods.workspaces, self.undelete_period)
        async with heartbeats("remove deleted workspaces"):
            await self._record_missing_archives(before, now)
            return await self._remove(retention.remove_workspaces, before)

    @activity.defn
    async def remove_collected_archives(self, request: SweepRequest) -> int:
        return await self._remove_kind(retention.remove_archives, request, self.periods.archives)

    @activity.defn
    async def remove_old_events(self, request: SweepRequest) -> int:
        return await self._remove_kind(retention.remove_events, request, self.periods.events)

    @activity.defn
    async def remove_ended_sessions(self, request: SweepRequest) -> int:
        return await self._remove_kind(retention.remove_sessions, request, self.periods.sessions)

    @activity.defn
    async def remove_ended_tokens(self, request: SweepRequest) -> int:
        return await self._remove_kind(retention.remove_tokens, request, self.periods.tokens)

    @activity.defn
    async def remove_old_usage(self, request: SweepRequest) -> int:
        """Remove what workspaces did: when they were used, and which names they connected to."""
        log = await self._remove_kind(retention.remove_egress_log, request, self.periods.egress_log)
        return log + await self._remove_kind(retention.remove_usage, request, self.periods.usage)

    @activity.defn
    async def remove_old_audit_log(self, request: SweepRequest) -> int:
        return await self._remove_kind(retention.remove_audit_log, request, self.periods.audit_log)

    async def _remove_kind(self, remove: RemoveOld, request: SweepRequest, period: timedelta) -> int:
        async with heartbeats("remove old rows"):
            return await self._remove(remove, sweep_time(request, self.clock) - period)

    async def _remove(self, remove: RemoveOld, before: datetime) -> int:
        removed = 0
        for _ in range(MOST_BATCHES):
            async with self.database.transaction() as session:
                count = await remove(session, before, BATCH)
            removed += count
            if count < BATCH:
                break
        return removed

    async def _record_missing_archives(self, before: datetime, now: datetime) -> None:
        """Record archives that disappeared without the collector, which records its own removals."""
        async with self.database.transaction() as session:
            keys = await list_uncollected(session, before, BATCH)
        for key in filter(parse_archive_key, keys):
            if await self._is_gone(key):
                async with self.database.transaction() as session:
                    await mark_orphans(session, [key], now)
                    await mark_collected(session, key, now)

    async def _is_gone(self, key: str) -> bool:
        try:
            return await self.archives.observe(key) is ArchiveFact.ABSENT
        except Failure as failure:
            # An outage must not look like a missing archive: keep the row.
            activity.logger.warning("cannot observe an archive: %s", failure)
            return False
