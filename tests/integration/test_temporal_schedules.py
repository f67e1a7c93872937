"""Every worker creates the schedules when it starts; they match the settings."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from temporalio import workflow
from temporalio.client import (
    Client,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleDescription,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
)
from temporalio.worker import Worker

from codehub import contracts
from codehub.adapters.temporal.schedules import SchedulePeriods, ensure_schedules
from testkit.waiting import until

QUEUE = "schedules"
SCHEDULES = (
    contracts.TTL_SCHEDULE,
    contracts.GC_SCHEDULE,
    contracts.OBSERVE_SCHEDULE,
    contracts.DISK_SCHEDULE,
    contracts.RETENTION_SCHEDULE,
)
# Long periods, so that nothing starts by itself during a test.
PERIODS = SchedulePeriods(
    ttl=timedelta(days=60),
    gc=timedelta(days=90),
    observe=timedelta(days=30),
    disk=timedelta(days=45),
    retention=timedelta(days=120),
)
# A missed retention run is made up for, because the next one would be a whole period later.
CATCHUP_WINDOWS = dict.fromkeys(SCHEDULES, timedelta(seconds=10)) | {
    contracts.RETENTION_SCHEDULE: PERIODS.retention
}


@workflow.defn(name="ObserveWorkflow", sandboxed=False)
class Sweep:
    """A fake workflow."""

    @workflow.run
    async def run(self) -> str:
        return "swept"


@pytest.fixture
async def client(temporal_client: Client) -> AsyncIterator[Client]:
    """Remove all schedules before and after the test."""
    yield temporal_client
    for schedule_id in SCHEDULES:
        await temporal_client.get_schedule_handle(schedule_id).delete()


async def describe(client: Client) -> dict[str, ScheduleDescription]:
    return {name: await client.get_schedule_handle(name).describe() for name in SCHEDULES}


async def intervals(client: Client) -> list[list[ScheduleIntervalSpec]]:
    return [list(each.schedule.spec.intervals) for each in (await describe(client)).values()]


async def test_the_default_periods_are_those_of_the_contract(client: Client) -> None:
    await ensure_schedules(client, QUEUE, SchedulePeriods())
    assert await intervals(client) == [
        [ScheduleIntervalSpec(every=timedelta(seconds=60))],
        [ScheduleIntervalSpec(every=timedelta(hours=4))],
        [ScheduleIntervalSpec(every=timedelta(seconds=15))],
        [ScheduleIntervalSpec(every=timedelta(seconds=60))],
        [ScheduleIntervalSpec(every=timedelta(days=1))],
    ]


async def test_each_schedule_starts_its_workflow_and_never_overlaps_itself(client: Client) -> None:
    await ensure_schedules(client, QUEUE, PERIODS)
    started = {}
    for schedule_id, description in (await describe(client)).items():
        action, policy = description.schedule.action, description.schedule.policy
        assert isinstance(action, ScheduleActionStartWorkflow)
        assert (action.id, action.task_queue) == (schedule_id, QUEUE)
        assert policy.overlap is ScheduleOverlapPolicy.SKIP
        assert policy.catchup_window == CATCHUP_WINDOWS[schedule_id]
        started[schedule_id] = action.workflow
    assert started == {
        "codehub-ttl": "TtlWorkflow",
        "codehub-archive-gc": "ArchiveGcWorkflow",
        "codehub-observe": "ObserveWorkflow",
        "codehub-disk": "DiskWorkflow",
        "codehub-retention": "RetentionWorkflow",
    }


async def test_a_schedule_that_is_due_runs_its_workflow(client: Client) -> None:
    task_queue = str(uuid.uuid4())
    await ensure_schedules(client, task_queue, PERIODS)
    schedule = client.get_schedule_handle(contracts.OBSERVE_SCHEDULE)

    async def has_started() -> bool:
        # The server drops a call that it handles after the catch-up window, so repeat it:
        # a running workflow is not started twice.
        await schedule.trigger()
        return bool((await schedule.describe()).info.recent_actions)

    async with Worker(client, task_queue=task_queue, workflows=[Sweep]):
        await until(has_started, "the schedule starts its workflow")
        [action, *_] = (await schedule.describe()).info.recent_actions
        assert isinstance(action.action, ScheduleActionExecutionStartWorkflow)
        assert await client.get_workflow_handle(action.action.workflow_id).result() == "swept"


async def test_several_workers_can_create_them_at_once(client: Client) -> None:
    for _ in range(2):
        await asyncio.gather(*(ensure_schedules(client, QUEUE, PERIODS) for _ in range(5)))
    assert await intervals(client) == [
        [ScheduleIntervalSpec(every=period)]
        for period in (PERIODS.ttl, PERIODS.gc, PERIODS.observe, PERIODS.disk, PERIODS.retention)
    ]


async def test_changed_settings_change_the_schedule(client: Client) -> None:
    await ensure_schedules(client, QUEUE, PERIODS)
    await ensure_schedules(client, "another", replace(PERIODS, ttl=timedelta(days=61)))
    description = (await describe(client))[contracts.TTL_SCHEDULE]
    assert list(description.schedule.spec.intervals) == [ScheduleIntervalSpec(every=timedelta(days=61))]
    assert isinstance(description.schedule.action, ScheduleActionStartWorkflow)
    assert description.schedule.action.task_queue == "another"


async def test_a_schedule_that_an_operator_paused_stays_paused(client: Client) -> None:
    await ensure_schedules(client, QUEUE, PERIODS)
    await client.get_schedule_handle(contracts.GC_SCHEDULE).pause(note="investigating")
    await ensure_schedules(client, QUEUE, PERIODS)
    paused = {name: each.schedule.state.paused for name, each in (await describe(client)).items()}
    assert paused == {name: name == contracts.GC_SCHEDULE for name in SCHEDULES}
