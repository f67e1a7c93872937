"""Steps of one kind do not wait for those of another, and owners take turns."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from temporalio.client import Client
from temporalio.service import RPCError

from codehub.contracts import workflow_id_of
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.policy import Policy, StepLimits
from testkit.rows import add_user
from testkit.waiting import until
from tests.workflows.harness import ControlPlane, running_control_plane
from workflows.policies import STEP_TIMEOUT

CROWD = 200
SLOTS = 2
FEW = Policy(steps=StepLimits(archives=SLOTS, restores=1, starts=1))
ELSEWHERE = "registry.example/ide:1"


@pytest.fixture
async def real_plane(
    temporal_client: Client, database: Database, redis_client: Redis
) -> AsyncIterator[ControlPlane]:
    async with running_control_plane(temporal_client, database, redis_client, policy=FEW) as plane:
        yield plane


async def neighbor(plane: ControlPlane) -> ControlPlane:
    """Return the same control plane for another user."""
    async with plane.database.transaction() as session:
        return replace(plane, owner=await add_user(session))


def hold(plane: ControlPlane, call: str) -> asyncio.Event:
    """Block calls of this name until the event is set."""
    return plane.world.gates.setdefault(call, asyncio.Event())


async def wake(plane: ControlPlane, workspace_id: WorkspaceId) -> None:
    await plane.convergence.wake(workspace_id, str(plane.owner))


async def arrive(plane: ControlPlane, workspace_id: WorkspaceId, phase: Phase) -> None:
    async def arrived() -> bool:
        row = await plane.snapshot(workspace_id)
        assert row.error_reason is None, row.error_message
        return (row.phase, row.operation) == (phase, Operation.NONE)

    await until(arrived, f"{phase} reached")


async def until_called(plane: ControlPlane, call: str, count: int = 1) -> None:
    async def called() -> bool:
        return len(subjects(plane, call)) >= count

    await until(called, f"{count} calls of {call}")


def subjects(plane: ControlPlane, call: str) -> list[str]:
    return [subject for name, subject in plane.world.calls if name == call]


async def begin_archive(plane: ControlPlane) -> WorkspaceId:
    """A home that is being archived."""
    workspace_id = await plane.create(DesiredState.ARCHIVED)
    plane.write(workspace_id, "precious")
    await wake(plane, workspace_id)
    return workspace_id


async def queue_many_archives(plane: ControlPlane) -> None:
    """Many archives of one owner: some hold every slot, all others wait."""
    hold(plane, "jobs.archive")
    for _ in range(CROWD):
        await begin_archive(plane)
    running = f'WorkflowType = "Archiving" AND OwnerId = "{plane.owner}" AND ExecutionStatus = "Running"'

    async def queued() -> bool:
        return (await plane.client.count_workflows(running)).count == CROWD

    await until(queued, "all archives are under way or wait")
    await until_called(plane, "jobs.archive", SLOTS)


async def test_two_hundred_archives_of_one_owner_block_no_other_owner(real_plane: ControlPlane) -> None:
    ada = await neighbor(real_plane)
    restored = await ada.reach(DesiredState.ARCHIVED)
    await queue_many_archives(real_plane)

    started = await ada.create(DesiredState.RUNNING)
    await ada.want(restored, DesiredState.STANDBY)
    for each in (started, restored):
        await wake(ada, each)
    await arrive(ada, started, Phase.RUNNING)
    await arrive(ada, restored, Phase.STANDBY)
    assert len(subjects(ada, "jobs.archive")) == SLOTS

    archived = await begin_archive(ada)
    await until_queued(ada, archived)
    hold(ada, "jobs.archive").set()
    await arrive(ada, archived, Phase.ARCHIVED)
    turn = subjects(ada, "jobs.archive").index(archived)
    # Slots that were free before the server knew about it, and then at most one other archive first.
    assert turn <= 2 * SLOTS + 1


async def until_queued(plane: ControlPlane, workspace_id: WorkspaceId) -> None:
    """Return whether its step waits in its queue."""
    handle = plane.client.get_workflow_handle(workflow_id_of(workspace_id, Operation.ARCHIVING))

    async def queued() -> bool:
        try:
            return bool((await handle.describe()).raw_description.pending_activities)
        except RPCError:
            return False  # does not exist yet

    await until(queued, "the step waits")


async def test_a_stop_does_not_wait_for_a_slow_start(real_plane: ControlPlane) -> None:
    running = await real_plane.reach(DesiredState.RUNNING)
    hold(real_plane, "instances.start")
    starting = await real_plane.create(DesiredState.RUNNING)
    await wake(real_plane, starting)
    await until_called(real_plane, "instances.start", 2)
    await real_plane.want(running, DesiredState.STANDBY)
    await wake(real_plane, running)
    await arrive(real_plane, running, Phase.STANDBY)
    hold(real_plane, "instances.start").set()
    await arrive(real_plane, starting, Phase.RUNNING)


async def test_no_more_instances_start_at_once_than_the_limit(real_plane: ControlPlane) -> None:
    hold(real_plane, "instances.start")
    starting = [await real_plane.create(DesiredState.RUNNING) for _ in range(5)]
    for each in starting:
        await wake(real_plane, each)
    await until_called(real_plane, "instances.start")
    # A step that was scheduled after all of them, in other queues, shows that they had the time to begin.
    await real_plane.reach(DesiredState.ARCHIVED)
    assert len(subjects(real_plane, "instances.start")) == FEW.steps.starts
    hold(real_plane, "instances.start").set()
    for each in starting:
        await arrive(real_plane, each, Phase.RUNNING)


async def test_a_slow_registry_blocks_no_other_start(real_plane: ControlPlane) -> None:
    real_plane.world.registry.add(ELSEWHERE)
    hold(real_plane, "instances.pull")
    pulling = await real_plane.create(DesiredState.RUNNING, image_ref=ELSEWHERE)
    await wake(real_plane, pulling)
    await until_called(real_plane, "instances.pull")
    await real_plane.reach(DesiredState.RUNNING)
    hold(real_plane, "instances.pull").set()
    await arrive(real_plane, pulling, Phase.RUNNING)
    assert real_plane.world.instances[pulling].image_ref == ELSEWHERE


async def test_an_unavailable_image_ends_in_an_error(plane: ControlPlane) -> None:
    workspace_id = await plane.create(DesiredState.RUNNING, image_ref=ELSEWHERE)
    snapshot = await plane.converge(workspace_id)
    assert (snapshot.phase, snapshot.error_reason) == (Phase.ERROR, ErrorReason.IMAGE_PULL_FAILED)


async def test_waiting_for_a_slot_counts_against_no_timeout(real_plane: ControlPlane) -> None:
    workspace_id = await real_plane.reach(DesiredState.STANDBY)
    await real_plane.want(workspace_id, DesiredState.ARCHIVED)
    await real_plane.converge(workspace_id)
    handle = real_plane.client.get_workflow_handle(workflow_id_of(workspace_id, Operation.ARCHIVING))
    steps = [
        event.activity_task_scheduled_event_attributes
        async for event in handle.fetch_history_events()
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    assert [step.activity_type.name for step in steps] == ["upload_archive", "remove_archived_volume"]
    for step in steps:
        # No timeout; the server fills in the workflow's own limit, which is none as well.
        limits = step.schedule_to_start_timeout, step.schedule_to_close_timeout
        assert [each.ToTimedelta() for each in limits] == [timedelta(0)] * 2
        assert step.start_to_close_timeout.ToTimedelta() == STEP_TIMEOUT
