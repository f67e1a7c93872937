"""What nobody uses: activity moves from Redis to the database, then idle workspaces step down."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity

from activities.heartbeat import heartbeats
from codehub.contracts import SweepRequest
from codehub.db.idle import due_for_archive, due_for_standby
from codehub.db.progress import operations_in_progress
from codehub.db.session import Database
from codehub.db.usage import forget_usage, load_owner_ids, note_usage, store_last_access
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import IdleTimes, RunningLimits
from codehub.domain.states import DesiredState, Operation
from codehub.ports import ActivityBuffer, Convergence
from codehub.services.errors import RequestRefused
from codehub.services.workspaces import request_state

ACTOR = "ttl"
BATCH = 500
# A sweep comes every minute. What it asks for beyond this would only wait, and cannot be started meanwhile.
ARCHIVES_PER_SLOT = 10
# People look at the last day; a week leaves room to ask for more.
USAGE_KEPT_FOR = timedelta(days=7)


@dataclass(frozen=True)
class IdleActivities:
    """The TTL sweep. It asks like anybody else does: through the service layer."""

    database: Database
    buffer: ActivityBuffer
    convergence: Convergence
    times: IdleTimes
    limits: RunningLimits
    archive_slots: int

    @activity.defn
    async def store_last_access(self, request: SweepRequest) -> int:
        """Move activity to the database; an entry leaves Redis only after it has been stored."""
        stored = 0
        async with heartbeats("store activity"):
            while used_at := await self.buffer.take(BATCH):
                async with self.database.transaction() as session:
                    await store_last_access(session, used_at)
                    await note_usage(session, used_at)
                    await forget_usage(session, request.now - USAGE_KEPT_FOR, BATCH)
                await self.buffer.discard(used_at)
                stored += len(used_at)
                if len(used_at) < BATCH:
                    break
        return stored

    @activity.defn
    async def stop_unused(self, request: SweepRequest) -> int:
        """Ask for STANDBY for what runs unused."""
        async with self.database.transaction() as session:
            due = await due_for_standby(session, request.now, self.times.standby, BATCH)
        return await self._ask(due, DesiredState.STANDBY, request)

    @activity.defn
    async def archive_unused(self, request: SweepRequest) -> int:
        """Ask for ARCHIVED for what has stood by unused, but for no more than can begin soon."""
        async with self.database.transaction() as session:
            under_way = await operations_in_progress(session)
            archiving = sum(each.operation is Operation.ARCHIVING for each in under_way)
            room = max(0, ARCHIVES_PER_SLOT * self.archive_slots - archiving)
            due = await due_for_archive(session, request.now, self.times.archive, room)
        return await self._ask(due, DesiredState.ARCHIVED, request)

    async def _ask(self, due: Iterable[WorkspaceId], desired: DesiredState, request: SweepRequest) -> int:
        asked = 0
        async with heartbeats(f"ask for {desired}"):
            async with self.database.transaction() as session:
                owners = await load_owner_ids(session, list(due))
            for workspace_id, owner_id in owners.items():
                try:
                    await request_state(
                        self.database, workspace_id, desired, actor=ACTOR, limits=self.limits, now=request.now
                    )
                except RequestRefused:
                    continue  # somebody was faster: it is in use, changing or gone
                await self.convergence.wake(workspace_id, owner_id)
                asked += 1
        return asked
