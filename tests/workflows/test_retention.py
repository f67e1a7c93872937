"""Old rows are removed, and those of workspaces only after their archives."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select
from temporalio.testing import ActivityEnvironment, WorkflowEnvironment

from activities.retention import BATCH, RetentionActivities
from codehub.contracts import SweepRequest
from codehub.db.events import EventKind, record_event
from codehub.db.models import WorkspaceEvent
from codehub.db.snapshots import load_snapshot
from codehub.db.usage import bucket_of, list_usage
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.retention import RetentionPeriods
from codehub.domain.states import DesiredState, Phase
from testkit.fakes import FakeArchives
from testkit.rows import new_workspace_id
from tests.workflows.harness import ControlPlane, skipping_server

pytestmark = pytest.mark.usefixtures("own_time")

GC, RETENTION, TTL = "ArchiveGcWorkflow", "RetentionWorkflow", "TtlWorkflow"
NOTHING = dict.fromkeys(("workspaces", "archives", "events", "sessions", "tokens", "usage", "audit_log"), 0)


@pytest.fixture
async def skipping() -> AsyncIterator[WorkflowEnvironment]:
    """Start a server for each test: the times of the rows are real, so its clock must start there too."""
    async with skipping_server() as environment:
        yield environment


async def deleted(plane: ControlPlane) -> WorkspaceId:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    await plane.delete(workspace_id)
    assert (await plane.converge(workspace_id)).phase is Phase.DELETED
    return workspace_id


async def exists(plane: ControlPlane, workspace_id: WorkspaceId) -> bool:
    async with plane.database.transaction() as session:
        return await load_snapshot(session, workspace_id) is not None


async def test_the_row_of_a_deleted_workspace_is_removed_after_its_archives(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await deleted(plane)
    assert await plane.run_sweep(RETENTION) == NOTHING
    await skipping.sleep(timedelta(days=91))
    # Its archive is not collected yet, so the row stays.
    assert (await plane.run_sweep(RETENTION))["workspaces"] == 0
    assert await exists(plane, workspace_id)
    await plane.run_sweep(GC)
    await skipping.sleep(timedelta(hours=3))
    assert (await plane.run_sweep(GC))["collected"] == 1
    assert (await plane.run_sweep(RETENTION))["workspaces"] == 1
    assert not await exists(plane, workspace_id)
    await skipping.sleep(timedelta(days=91))
    assert (await plane.run_sweep(RETENTION))["archives"] == 1


async def test_the_row_of_an_existing_workspace_is_never_removed(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    await skipping.sleep(timedelta(days=4000))
    result = await plane.run_sweep(RETENTION)
    assert (result["workspaces"], result["archives"]) == (0, 0)
    assert await exists(plane, workspace_id)


async def test_usage_is_recorded_per_quarter_hour_and_removed_after_a_week(
    plane: ControlPlane, skipping: WorkflowEnvironment
) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    moments = []
    for pause in (timedelta(0), timedelta(days=5), timedelta(days=4)):
        await skipping.sleep(pause)
        moments.append(await skipping.get_current_time())
        await plane.buffer.record({workspace_id: moments[-1]})
        await plane.run_sweep(TTL)
    assert (await plane.run_sweep(RETENTION))["usage"] == 1
    async with plane.database.transaction() as session:
        noted = await list_usage(session, workspace_id, moments[0] - timedelta(days=1))
    assert noted == [bucket_of(moment) for moment in moments[1:]]


def activities(plane: ControlPlane, now: datetime, undelete_days: int = 7) -> RetentionActivities:
    archives, undelete = FakeArchives(plane.world), timedelta(days=undelete_days)
    return RetentionActivities(plane.database, archives, RetentionPeriods(), undelete, lambda: now)


async def remove_workspaces(plane: ControlPlane, days: int, undelete_days: int = 7) -> int:
    now = datetime.now(UTC) + timedelta(days=days)
    remove = activities(plane, now, undelete_days).remove_deleted_workspaces
    return await ActivityEnvironment().run(remove, SweepRequest(now))


async def test_a_missing_archive_does_not_keep_its_row_forever(plane: ControlPlane) -> None:
    workspace_id = await deleted(plane)
    plane.world.objects.clear()
    assert await remove_workspaces(plane, days=89) == 0
    assert await remove_workspaces(plane, days=91) == 1
    assert not await exists(plane, workspace_id)


async def test_a_store_that_is_down_is_not_a_missing_archive(plane: ControlPlane) -> None:
    workspace_id = await deleted(plane)
    plane.world.objects.clear()
    plane.world.down.add(Resource.ARCHIVE)
    assert await remove_workspaces(plane, days=91) == 0
    assert await exists(plane, workspace_id)
    plane.world.down.clear()
    assert await remove_workspaces(plane, days=91) == 1


async def test_a_row_stays_at_least_as_long_as_its_undelete_period(plane: ControlPlane) -> None:
    await deleted(plane)
    plane.world.objects.clear()
    assert await remove_workspaces(plane, days=300, undelete_days=365) == 0
    assert await remove_workspaces(plane, days=366, undelete_days=365) == 1


async def test_a_time_years_ahead_removes_nothing(plane: ControlPlane) -> None:
    workspace_id = await deleted(plane)
    plane.world.objects.clear()
    real = activities(plane, datetime.now(UTC))
    for remove in (real.remove_deleted_workspaces, real.remove_old_events, real.remove_collected_archives):
        request = SweepRequest(datetime.now(UTC) + timedelta(days=4000))
        assert await ActivityEnvironment().run(remove, request) == 0
    assert await exists(plane, workspace_id)


async def test_more_rows_than_a_batch_are_removed_in_one_run(plane: ControlPlane) -> None:
    now = datetime.now(UTC)
    async with plane.database.transaction() as session:
        for _ in range(BATCH + 1):
            long_ago = now - timedelta(days=91)
            await record_event(session, new_workspace_id(), EventKind.CREATED, long_ago, actor="ann")
    remove = activities(plane, now).remove_old_events
    assert await ActivityEnvironment().run(remove, SweepRequest(now)) == BATCH + 1
    async with plane.database.transaction() as session:
        assert (await session.scalars(select(func.count()).select_from(WorkspaceEvent))).one() == 0
