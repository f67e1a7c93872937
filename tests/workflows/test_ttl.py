"""Idle workspaces are stopped and archived over days; used ones are not."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from sqlalchemy import update
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig
from temporalio.testing import ActivityEnvironment, WorkflowEnvironment

from activities.idle import ARCHIVES_PER_SLOT, BATCH, REJECTED_METRIC, IdleActivities
from codehub.adapters.redis.activity import ACTIVITY_KEY
from codehub.contracts import SweepRequest
from codehub.db.models import User
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.policy import Policy
from testkit.rows import new_workspace_id
from tests.workflows.harness import LIMITS, ControlPlane, skipping_server

pytestmark = pytest.mark.usefixtures("own_time")

TTL = "TtlWorkflow"


@pytest.fixture
async def skipping() -> AsyncIterator[WorkflowEnvironment]:
    """Start a server for each test: the times of the rows are real, so its clock must start there too."""
    async with skipping_server() as environment:
        yield environment


async def sweep_until_settled(plane: ControlPlane, workspace_id: WorkspaceId) -> Phase:
    """Run one sweep and the workflows that it woke."""
    await plane.run_sweep(TTL)
    return (await plane.converge(workspace_id)).phase


async def reach_running_with_late_archive(plane: ControlPlane) -> WorkspaceId:
    """Only the sweep's clock skips ahead: with the usual TTL it could archive what it has just stopped."""
    workspace_id = await plane.create(archive_ttl_seconds=int(timedelta(days=2).total_seconds()))
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    return workspace_id


async def test_an_unused_workspace_is_stopped_and_days_later_archived(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.create(
        standby_ttl_seconds=int(timedelta(hours=3).total_seconds()),
        archive_ttl_seconds=int(timedelta(days=2).total_seconds()),
    )
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    plane.write(workspace_id, "precious")
    assert await sweep_until_settled(plane, workspace_id) is Phase.RUNNING
    await skipping.sleep(timedelta(hours=4))
    assert await sweep_until_settled(plane, workspace_id) is Phase.STANDBY
    assert await sweep_until_settled(plane, workspace_id) is Phase.STANDBY
    await skipping.sleep(timedelta(days=3))
    assert await sweep_until_settled(plane, workspace_id) is Phase.ARCHIVED
    snapshot = await plane.snapshot(workspace_id)
    assert plane.read_archived(snapshot.archive_key) == "precious"


async def test_a_disabled_users_workspace_is_stopped_by_the_next_sweep_and_archived_after_its_time(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.create(archive_ttl_seconds=int(timedelta(days=2).total_seconds()))
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    assert await sweep_until_settled(plane, workspace_id) is Phase.RUNNING
    async with plane.database.transaction() as session:
        await session.execute(update(User).values(disabled_at=plane.now))
    assert await sweep_until_settled(plane, workspace_id) is Phase.STANDBY
    assert not plane.world.instances
    await skipping.sleep(timedelta(days=3))
    assert await sweep_until_settled(plane, workspace_id) is Phase.ARCHIVED


async def test_use_keeps_a_workspace_running(plane: ControlPlane, skipping: WorkflowEnvironment) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    await skipping.sleep(timedelta(hours=5))
    used_at = await skipping.get_current_time()
    await plane.buffer.record({workspace_id: used_at})
    result = await plane.run_sweep(TTL)
    assert (result["used"], result["stopped"]) == (1, 0)
    assert (await plane.snapshot(workspace_id)).desired_state is DesiredState.RUNNING
    assert (await plane.buffer.take(10)).used_at == {}


async def test_an_invalid_entry_does_not_stop_the_sweep(
    plane: ControlPlane, skipping: WorkflowEnvironment, redis_client: Redis
) -> None:
    workspace_id = await reach_running_with_late_archive(plane)
    await skipping.sleep(timedelta(hours=5))
    await redis_client.zadd(ACTIVITY_KEY, {"not a workspace": 1.0, workspace_id: float("inf")})
    assert await sweep_until_settled(plane, workspace_id) is Phase.STANDBY
    assert await redis_client.zcard(ACTIVITY_KEY) == 0


async def test_invalid_entries_do_not_hide_the_valid_ones_behind_them(
    plane: ControlPlane, skipping: WorkflowEnvironment, redis_client: Redis
) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    await skipping.sleep(timedelta(hours=5))
    await redis_client.zadd(ACTIVITY_KEY, {f"bad {number}": number for number in range(BATCH + 1)})
    await plane.buffer.record({workspace_id: await skipping.get_current_time()})
    result = await plane.run_sweep(TTL)
    assert (result["used"], result["stopped"]) == (1, 0)


async def test_invalid_entries_are_counted(plane: ControlPlane, redis_client: Redis) -> None:
    await redis_client.zadd(ACTIVITY_KEY, {"bad": 1.0, "worse": 2.0})
    metrics = MetricBuffer(100)
    environment = ActivityEnvironment()
    environment.metric_meter = Runtime(telemetry=TelemetryConfig(metrics=metrics)).metric_meter
    idle = IdleActivities(
        plane.database,
        plane.buffer,
        plane.convergence,
        Policy().idle_times,
        Policy().longest_idle_times,
        LIMITS,
        1,
    )
    assert await environment.run(idle.store_last_access, SweepRequest(plane.now)) == 0
    [counted] = [each for each in metrics.retrieve_updates() if each.metric.name == REJECTED_METRIC]
    assert counted.value == 2


async def test_use_of_a_workspace_that_does_not_exist_is_dropped(plane: ControlPlane) -> None:
    await plane.buffer.record({new_workspace_id(): plane.now})
    assert (await plane.run_sweep(TTL))["stopped"] == 0
    assert (await plane.buffer.take(10)).used_at == {}


async def test_use_in_the_future_counts_as_now(plane: ControlPlane, skipping: WorkflowEnvironment) -> None:
    workspace_id = await reach_running_with_late_archive(plane)
    await plane.buffer.record({workspace_id: plane.now + timedelta(days=3000)})
    assert await sweep_until_settled(plane, workspace_id) is Phase.RUNNING
    await skipping.sleep(timedelta(hours=5))
    assert await sweep_until_settled(plane, workspace_id) is Phase.STANDBY


async def test_no_more_is_archived_at_once_than_can_begin_soon(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    """Their owners cannot start them while they wait."""
    most = ARCHIVES_PER_SLOT * Policy().steps.archives
    idle = [await plane.create(DesiredState.STANDBY, phase=Phase.STANDBY) for _ in range(most + 3)]
    under_way = {"phase": Phase.STANDBY, "operation": Operation.ARCHIVING, "op_started_at": plane.now}
    await plane.create(DesiredState.ARCHIVED, **under_way)
    # While S3 is down, nothing is claimed, and all of them would begin at once when it is back.
    await plane.create(DesiredState.ARCHIVED, phase=Phase.STANDBY, waiting_for=[Resource.ARCHIVE])
    await skipping.sleep(timedelta(days=9))
    assert (await plane.run_sweep(TTL))["archived"] == most - 2
    left = [await plane.snapshot(each) for each in idle]
    assert sum(each.desired_state is DesiredState.STANDBY for each in left) == 5


async def test_a_busy_workspace_is_left_alone(plane: ControlPlane, skipping: WorkflowEnvironment) -> None:
    workspace_id = await plane.create(operation="PROVISIONING", op_started_at=plane.now)
    await skipping.sleep(timedelta(days=1))
    result = await plane.run_sweep(TTL)
    assert (result["stopped"], result["archived"]) == (0, 0)
    assert (await plane.snapshot(workspace_id)).operation is Operation.PROVISIONING
