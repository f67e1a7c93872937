"""Creates the schedules of the sweeps and reads their state."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from codehub import contracts
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import SweepState

TTL_WORKFLOW = "TtlWorkflow"
GC_WORKFLOW = "ArchiveGcWorkflow"
DISK_WORKFLOW = "DiskWorkflow"
OBSERVE_WORKFLOW = "ObserveWorkflow"
RETENTION_WORKFLOW = "RetentionWorkflow"

# An older missed run is not made up for: the next one does its work.
CATCHUP_WINDOW = timedelta(seconds=10)
# A run that new code cannot replay would block the next ones forever, so runs have a timeout.
SHORT_SWEEP = timedelta(minutes=10)
LONG_SWEEP = timedelta(hours=2)


@dataclass(frozen=True)
class SchedulePeriods:
    """The period of each sweep."""

    ttl: timedelta = timedelta(seconds=60)
    gc: timedelta = timedelta(hours=4)
    observe: timedelta = timedelta(seconds=15)
    disk: timedelta = timedelta(seconds=60)
    retention: timedelta = timedelta(days=1)


@dataclass(frozen=True)
class Sweep:
    """One schedule and the workflow it starts; `limit` is the timeout of one run."""

    schedule_id: str
    workflow: str
    period: timedelta
    limit: timedelta
    summary: str
    catchup_window: timedelta = CATCHUP_WINDOW


def sweeps(periods: SchedulePeriods) -> Iterator[Sweep]:
    yield Sweep(
        contracts.TTL_SCHEDULE, TTL_WORKFLOW, periods.ttl, SHORT_SWEEP, "Stops and archives idle workspaces"
    )
    yield Sweep(
        contracts.GC_SCHEDULE, GC_WORKFLOW, periods.gc, LONG_SWEEP, "Removes archives that nothing needs"
    )
    yield Sweep(
        contracts.OBSERVE_SCHEDULE,
        OBSERVE_WORKFLOW,
        periods.observe,
        SHORT_SWEEP,
        "Wakes workspaces that differ from their desired state",
    )
    yield Sweep(
        contracts.DISK_SCHEDULE, DISK_WORKFLOW, periods.disk, SHORT_SWEEP, "Measures the disk usage of homes"
    )
    yield Sweep(
        contracts.RETENTION_SCHEDULE,
        RETENTION_WORKFLOW,
        periods.retention,
        LONG_SWEEP,
        "Removes old rows",
        # A machine that is off every night would always miss the same hour.
        catchup_window=periods.retention,
    )


async def ensure_schedules(client: Client, task_queue: str, periods: SchedulePeriods) -> None:
    """Create or update the schedules. Several workers can do so at once."""
    for sweep in sweeps(periods):
        await _ensure(client, sweep.schedule_id, _schedule(sweep, task_queue))


def _schedule(sweep: Sweep, task_queue: str) -> Schedule:
    return Schedule(
        action=ScheduleActionStartWorkflow(
            sweep.workflow,
            id=sweep.schedule_id,
            task_queue=task_queue,
            execution_timeout=sweep.limit,
            static_summary=sweep.summary,
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=sweep.period)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=sweep.catchup_window),
    )


async def _ensure(client: Client, schedule_id: str, wanted: Schedule) -> None:
    def keep_state(update: ScheduleUpdateInput) -> ScheduleUpdate:
        # A restarted worker must not resume a schedule that an operator paused.
        wanted.state = update.description.schedule.state
        return ScheduleUpdate(wanted)

    try:
        await client.create_schedule(schedule_id, wanted)
    except ScheduleAlreadyRunningError:
        await client.get_schedule_handle(schedule_id).update(keep_state)


TIMEOUT = timedelta(seconds=3)
SCHEDULES = (
    contracts.OBSERVE_SCHEDULE,
    contracts.TTL_SCHEDULE,
    contracts.DISK_SCHEDULE,
    contracts.GC_SCHEDULE,
    contracts.RETENTION_SCHEDULE,
)


class TemporalSweeps:
    """A `Sweeps`; the client can be lazy."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self) -> Sequence[SweepState]:
        try:
            async with asyncio.timeout(TIMEOUT.total_seconds()):
                states = await asyncio.gather(*map(self._read, SCHEDULES))
        # A lazy client that cannot connect raises RuntimeError.
        except (RPCError, RuntimeError, TimeoutError) as error:
            raise Transient(ErrorReason.UNREACHABLE, f"Temporal cannot be reached: {error}") from error
        return [state for state in states if state is not None]

    async def _read(self, schedule_id: str) -> SweepState | None:
        try:
            description = await self._client.get_schedule_handle(schedule_id).describe(rpc_timeout=TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
        info = description.info
        return SweepState(
            schedule_id=schedule_id,
            paused=description.schedule.state.paused,
            running=bool(info.running_actions),
            last_started_at=info.recent_actions[-1].started_at if info.recent_actions else None,
            next_at=info.next_action_times[0] if info.next_action_times else None,
        )
