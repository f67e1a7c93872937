"""The TTL sweep: stores activity in the database, then stops and archives idle workspaces."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from temporalio import activity

from activities.step_monitor import heartbeats
from activities.sweep_time import sweep_time
from codehub.clock import Clock, utc_now
from codehub.contracts import SweepRequest
from codehub.db.session import Database
from codehub.db.sweeps import Ttl, count_unfinished, due_for_archive, due_for_standby
from codehub.db.usage import load_owner_ids, record_usage, store_last_access
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import IdleTimes, RunningLimits
from codehub.domain.states import DesiredState
from codehub.ports import ActivityBuffer, Convergence
from codehub.services.disabled_users import stop_workspaces_of_disabled
from codehub.services.errors import RequestRefused
from codehub.services.requests import RequestContext
from codehub.services.workspaces import request_state

ACTOR = "ttl"
BATCH = 500
REJECTED_METRIC = "codehub_activity_entries_rejected"
# More requests would only wait until the next sweep, and their workspaces could not be started meanwhile.
ARCHIVES_PER_SLOT = 10


@dataclass(frozen=True)
class IdleActivities:
    """The TTL sweep. It changes the desired state through the service layer, like everyone else."""

    database: Database
    buffer: ActivityBuffer
    convergence: Convergence
    times: IdleTimes
    longest: IdleTimes
    limits: RunningLimits
    archive_slots: int
    clock: Clock = utc_now

    @activity.defn
    async def store_last_access(self, request: SweepRequest) -> int:
        """Move activity to the database. Remove an entry from Redis only after it is stored."""
        now = sweep_time(request, self.clock)
        stored = 0
        async with heartbeats("store activity"):
            while True:
                taken = await self.buffer.take(BATCH)
                _count_rejected(taken.rejected)
                if taken.used_at:
                    await self._store(taken.used_at, now)
                    stored += len(taken.used_at)
                if len(taken.used_at) + taken.rejected < BATCH:
                    return stored

    async def _store(self, used_at: Mapping[WorkspaceId, datetime], now: datetime) -> None:
        # A wrong clock can report a use in the future, which must not keep a workspace running forever.
        bounded = {workspace_id: min(moment, now) for workspace_id, moment in used_at.items()}
        async with self.database.transaction() as session:
            await store_last_access(session, bounded)
            await record_usage(session, bounded)
        await self.buffer.discard(used_at)

    @activity.defn
    async def stop_unused(self, request: SweepRequest) -> int:
        """Request STANDBY for running workspaces that are idle, or whose owner is disabled."""
        now = sweep_time(request, self.clock)
        stopped = await self._stop_those_of_disabled(now)
        async with self.database.transaction() as session:
            due = await due_for_standby(session, now, Ttl(self.times.standby, self.longest.standby), BATCH)
        return stopped + await self._request(due, DesiredState.STANDBY, now)

    async def _stop_those_of_disabled(self, now: datetime) -> int:
        async with heartbeats("stop the workspaces of disabled users"):
            asked = await stop_workspaces_of_disabled(
                self.database, context=RequestContext(ACTOR, self.limits, now)
            )
            for each in asked:
                await self.convergence.wake(each.workspace_id, each.owner_id)
        return len(asked)

    @activity.defn
    async def archive_unused(self, request: SweepRequest) -> int:
        """Request ARCHIVED for stopped workspaces that are idle, but for no more than can begin soon."""
        now = sweep_time(request, self.clock)
        async with self.database.transaction() as session:
            # Count requested ones, not only claimed ones: while S3 is down, none are claimed.
            requested = await count_unfinished(session, DesiredState.ARCHIVED)
            room = max(0, ARCHIVES_PER_SLOT * self.archive_slots - requested)
            due = await due_for_archive(session, now, Ttl(self.times.archive, self.longest.archive), room)
        return await self._request(due, DesiredState.ARCHIVED, now)

    async def _request(self, due: Iterable[WorkspaceId], desired: DesiredState, now: datetime) -> int:
        requested = 0
        async with heartbeats(f"request {desired}"):
            async with self.database.transaction() as session:
                owners = await load_owner_ids(session, list(due))
            for workspace_id, owner_id in owners.items():
                try:
                    await request_state(
                        self.database, workspace_id, desired, context=RequestContext(ACTOR, self.limits, now)
                    )
                except RequestRefused:
                    continue  # it is in use, changing or gone by now
                await self.convergence.wake(workspace_id, owner_id)
                requested += 1
        return requested


def _count_rejected(entries: int) -> None:
    if entries:
        description = "Invalid entries of the activity buffer"
        activity.metric_meter().create_counter(REJECTED_METRIC, description).add(entries)
