"""The disk sweep measures homes in turn; above its limit, a workspace runs on but does not start."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.testing import ActivityEnvironment

from activities import disk
from activities.disk import DiskActivities
from codehub.contracts import SweepRequest
from codehub.db.disk_usage import due_for_measurement
from codehub.db.views import WorkspaceView, load_view
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.domain.states import DesiredState, Phase
from codehub.ports import Measurement
from codehub.services.errors import DiskLimitExceeded
from codehub.services.requests import RequestContext
from codehub.services.workspaces import request_state
from testkit.fakes import FakeVolumes
from tests.workflows.harness import ControlPlane

LIMITS = RunningLimits(per_user=100, total=1000, disk_bytes=1000)
FULL, ROOMY = Measurement(2000, complete=True), Measurement(500, complete=True)


async def sweep(plane: ControlPlane, now: datetime | None = None) -> int:
    """Run the activity at this time."""
    moment = now or datetime.now(UTC)
    activities = DiskActivities(plane.database, FakeVolumes(plane.world), LIMITS, lambda: moment)
    return (await ActivityEnvironment().run(activities.measure_homes, SweepRequest(moment))).measured


async def view_of(plane: ControlPlane, workspace_id: WorkspaceId) -> WorkspaceView:
    async with plane.database.transaction() as session:
        view = await load_view(session, workspace_id)
    assert view is not None
    return view


async def start(plane: ControlPlane, workspace_id: WorkspaceId) -> None:
    context = RequestContext("ann", LIMITS, datetime.now(UTC))
    await request_state(plane.database, workspace_id, DesiredState.RUNNING, context=context)


async def test_the_scheduled_workflow_measures(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.world.sizes[workspace_id] = ROOMY
    assert await plane.run_sweep("DiskWorkflow") == {"measured": 1}
    assert (await view_of(plane, workspace_id)).disk_used_bytes == 500


async def test_a_stopped_workspace_is_measured_once_and_a_running_one_in_turn(plane: ControlPlane) -> None:
    await plane.reach(DesiredState.STANDBY)
    await plane.reach(DesiredState.RUNNING)
    await plane.reach(DesiredState.ARCHIVED)
    now = datetime.now(UTC)
    assert await sweep(plane, now) == 2
    assert await sweep(plane, now + timedelta(minutes=9)) == 0
    assert await sweep(plane, now + timedelta(minutes=10)) == 1


async def test_one_sweep_measures_only_a_few(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "BATCH", 2)
    for _ in range(3):
        await plane.reach(DesiredState.STANDBY)
    assert [await sweep(plane) for _ in range(3)] == [2, 1, 0]


async def test_what_has_just_stopped_comes_first(plane: ControlPlane) -> None:
    running, stopped = await plane.reach(DesiredState.RUNNING), await plane.reach(DesiredState.STANDBY)
    async with plane.database.transaction() as session:
        due = await due_for_measurement(session, datetime.now(UTC), timedelta(0), 10)
    assert due == [stopped, running]


async def test_above_the_limit_it_runs_on_but_does_not_start_again(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    plane.world.sizes[workspace_id] = FULL
    await sweep(plane)
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING
    await plane.want(workspace_id, DesiredState.STANDBY)
    await plane.converge(workspace_id)
    # It may have become smaller between the measurement and the stop.
    with pytest.raises(DiskLimitExceeded, match="measured again"):
        await start(plane, workspace_id)
    await sweep(plane)
    with pytest.raises(DiskLimitExceeded, match="Ask an administrator"):
        await start(plane, workspace_id)


async def test_files_that_were_deleted_before_the_stop_count(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.RUNNING)
    plane.world.sizes[workspace_id] = FULL
    await sweep(plane)
    plane.world.sizes[workspace_id] = ROOMY
    await plane.want(workspace_id, DesiredState.STANDBY)
    await plane.converge(workspace_id)
    await sweep(plane)
    await start(plane, workspace_id)
    assert (await plane.converge(workspace_id)).phase is Phase.RUNNING


async def test_archiving_and_restoring_stay_possible(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.world.sizes[workspace_id] = FULL
    plane.write(workspace_id, "precious")
    await sweep(plane)
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    assert (await plane.converge(workspace_id)).phase is Phase.ARCHIVED
    with pytest.raises(DiskLimitExceeded, match="restores it and measures it again"):
        await start(plane, workspace_id)
    await plane.want(workspace_id, DesiredState.STANDBY)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert "precious" in json.dumps(sorted(map(str, plane.world.volumes[workspace_id].values())))
    plane.world.sizes[workspace_id] = ROOMY
    await sweep(plane)
    await start(plane, workspace_id)


async def test_an_outage_measures_nothing_and_forgets_nothing(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.world.sizes[workspace_id] = FULL
    await sweep(plane)
    plane.world.down.add(Resource.VOLUME)
    assert await sweep(plane, datetime.now(UTC) + timedelta(hours=1)) == 0
    plane.world.down.clear()
    assert (await view_of(plane, workspace_id)).disk_used_bytes == FULL.used_bytes
