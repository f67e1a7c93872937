"""The sweeps that Temporal starts by itself."""

from collections.abc import Iterator
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

from codehub import contracts

TTL_WORKFLOW = "TtlWorkflow"
GC_WORKFLOW = "ArchiveGcWorkflow"
OBSERVE_WORKFLOW = "ObserveWorkflow"
RETENTION_WORKFLOW = "RetentionWorkflow"

# What was missed for longer is not caught up on: the next sweep does its work.
CATCHUP_WINDOW = timedelta(seconds=10)
# No run may hold up the next ones forever, as one does that new code cannot replay.
SHORT_SWEEP = timedelta(minutes=10)
LONG_SWEEP = timedelta(hours=2)


@dataclass(frozen=True)
class SchedulePeriods:
    """How often each sweep runs."""

    ttl: timedelta = timedelta(seconds=60)
    gc: timedelta = timedelta(hours=4)
    observe: timedelta = timedelta(seconds=15)
    retention: timedelta = timedelta(days=1)


@dataclass(frozen=True)
class Sweep:
    """One schedule and the workflow it starts; `limit` is how long one run may take."""

    schedule_id: str
    workflow: str
    period: timedelta
    limit: timedelta
    summary: str
    catchup_window: timedelta = CATCHUP_WINDOW


def sweeps(periods: SchedulePeriods) -> Iterator[Sweep]:
    yield Sweep(
        contracts.TTL_SCHEDULE, TTL_WORKFLOW, periods.ttl, SHORT_SWEEP, "Parks workspaces that nobody uses"
    )
    yield Sweep(
        contracts.GC_SCHEDULE, GC_WORKFLOW, periods.gc, LONG_SWEEP, "Removes archives that nothing needs"
    )
    yield Sweep(
        contracts.OBSERVE_SCHEDULE,
        OBSERVE_WORKFLOW,
        periods.observe,
        SHORT_SWEEP,
        "Wakes workspaces that are not as they should be",
    )
    yield Sweep(
        contracts.RETENTION_SCHEDULE,
        RETENTION_WORKFLOW,
        periods.retention,
        LONG_SWEEP,
        "Removes rows of what has been over for long",
        # A machine that is switched off every night would always miss the same hour.
        catchup_window=periods.retention,
    )


async def ensure_schedules(client: Client, task_queue: str, periods: SchedulePeriods) -> None:
    """Create the schedules, or make those there are as they should be; several workers may do so at once."""
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
        # An operator has paused it, perhaps; a restarted worker must not take that back.
        wanted.state = update.description.schedule.state
        return ScheduleUpdate(wanted)

    try:
        await client.create_schedule(schedule_id, wanted)
    except ScheduleAlreadyRunningError:
        await client.get_schedule_handle(schedule_id).update(keep_state)
