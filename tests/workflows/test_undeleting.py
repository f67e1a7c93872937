"""A deletion can be undone before or after its end; the collector and the undelete never both win."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from temporalio.testing import ActivityEnvironment

from activities.garbage import GarbageActivities
from activities.observer import Observer
from activities.workspace import WorkspaceActivities
from codehub.contracts import ClaimRequest, GcResult, SweepRequest
from codehub.db.session import Database
from codehub.db.snapshots import load_snapshot
from codehub.db.workspaces import save_deletion
from codehub.domain import deletion
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Permanent
from codehub.domain.garbage import GracePeriods
from codehub.domain.limits import RunningLimits
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.services.deletion import undelete_workspace
from codehub.services.errors import InvalidState
from codehub.services.requests import RequestContext
from testkit.fakes import FakeArchives, FakeInstances, FakeVolumes
from testkit.waiting import until
from tests.workflows.harness import ControlPlane

OBSERVE = "ObserveWorkflow"
GRACES = GracePeriods()
NEW_OP = "33333333-3333-4333-8333-333333333333"
RACES = 12
WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


async def undelete(plane: ControlPlane, workspace_id: WorkspaceId) -> None:
    context = RequestContext("test", RunningLimits(), datetime.now(UTC))
    await undelete_workspace(plane.database, workspace_id, context=context)


async def precious(plane: ControlPlane, begin: DesiredState = DesiredState.STANDBY) -> WorkspaceId:
    workspace_id = await plane.reach(begin)
    plane.write(workspace_id, "precious")
    return workspace_id


async def deleted(plane: ControlPlane) -> WorkspaceId:
    workspace_id = await precious(plane)
    await plane.delete(workspace_id)
    assert (await plane.converge(workspace_id)).phase is Phase.DELETED
    return workspace_id


async def expect_files_back(plane: ControlPlane, workspace_id: WorkspaceId) -> None:
    """Assert that the workspace is archived, and that its files exist when it runs again."""
    parked = await plane.converge(workspace_id)
    assert (parked.phase, parked.operation, parked.error_reason) == (Phase.ARCHIVED, Operation.NONE, None)
    await plane.want(workspace_id, DesiredState.STANDBY)
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY
    assert plane.read(workspace_id) == "precious"


async def test_an_undeleted_workspace_has_its_files(plane: ControlPlane) -> None:
    workspace_id = await deleted(plane)
    await undelete(plane, workspace_id)
    await expect_files_back(plane, workspace_id)


@pytest.mark.parametrize("begin", [DesiredState.RUNNING, DesiredState.STANDBY])
async def test_a_deletion_that_has_not_begun_ends_in_the_archive(
    plane: ControlPlane, begin: DesiredState
) -> None:
    workspace_id = await precious(plane, begin)
    await plane.delete(workspace_id)
    await undelete(plane, workspace_id)
    await expect_files_back(plane, workspace_id)


async def test_an_undone_failed_deletion_is_an_error_to_recover(plane: ControlPlane) -> None:
    workspace_id = await precious(plane)
    await plane.delete(workspace_id)
    plane.fail("jobs.archive", Permanent(ErrorReason.TIMEOUT, "It took too long."))
    assert (await plane.converge(workspace_id)).phase is Phase.DELETING
    await undelete(plane, workspace_id)
    broken = await plane.converge(workspace_id)
    assert (broken.phase, broken.error_reason) == (Phase.ERROR, ErrorReason.TIMEOUT)
    assert plane.read(workspace_id) == "precious"


async def test_a_sweep_makes_up_for_a_lost_wake(plane: ControlPlane) -> None:
    workspace_id = await precious(plane)
    await plane.delete(workspace_id)
    await undelete(plane, workspace_id)
    assert (await plane.run_sweep(OBSERVE))["not_converged"] == 1
    await plane.client.get_workflow_handle(f"workspace-{workspace_id}").result()
    assert (await plane.snapshot(workspace_id)).phase is Phase.ARCHIVED


async def test_an_earlier_planned_step_of_the_deletion_is_not_run(plane: ControlPlane) -> None:
    """ARCHIVING removes a leftover volume and checks the archive first; DELETING does not."""
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    plane.write(workspace_id, "leftover")
    await plane.delete(workspace_id)
    observer = Observer(FakeInstances(plane.world), FakeVolumes(plane.world), FakeArchives(plane.world))
    activities = WorkspaceActivities(plane.database, observer)
    assert await ActivityEnvironment().run(activities.observe, workspace_id)
    await undelete(plane, workspace_id)
    request = ClaimRequest(workspace_id, Operation.DELETING, NEW_OP)
    assert await ActivityEnvironment().run(activities.claim, request) is None
    assert (await plane.converge(workspace_id)).phase is Phase.ARCHIVED
    assert (await plane.operations(workspace_id))[-1] == Operation.ARCHIVING


class RequestingArchives(FakeArchives):
    """Requests a workspace while its archive is being removed."""

    def __init__(self, plane: ControlPlane, workspace_id: WorkspaceId) -> None:
        super().__init__(plane.world)
        self._plane = plane
        self._workspace_id = workspace_id
        self.refused = False

    async def remove(self, key: str) -> None:
        try:
            await undelete(self._plane, self._workspace_id)
        except InvalidState:
            self.refused = True
        await super().remove(key)


def collector(plane: ControlPlane, archives: FakeArchives | None = None) -> GarbageActivities:
    return GarbageActivities(plane.database, archives or FakeArchives(plane.world), plane.convergence, GRACES)


async def collect(collecting: GarbageActivities, now: datetime) -> GcResult:
    at_that_time = replace(collecting, clock=lambda: now)
    return await ActivityEnvironment().run(at_that_time.collect, SweepRequest(now))


async def see_orphans(plane: ControlPlane) -> datetime:
    """Let the collector mark unneeded archives. Return a time when their grace is over."""
    now = datetime.now(UTC) + GRACES.undelete
    await collect(collector(plane), now)
    return now + GRACES.orphan


async def test_a_deletion_can_be_undone_for_days(plane: ControlPlane) -> None:
    workspace_id = await deleted(plane)
    for days in (1, 3, 6):
        assert (await collect(collector(plane), datetime.now(UTC) + timedelta(days=days))).collected == 0
    await undelete(plane, workspace_id)
    await expect_files_back(plane, workspace_id)


async def test_a_workspace_whose_archive_is_being_collected_cannot_be_undeleted(plane: ControlPlane) -> None:
    workspace_id = await deleted(plane)
    due = await see_orphans(plane)
    archives = RequestingArchives(plane, workspace_id)
    assert (await collect(collector(plane, archives), due)).collected == 1
    assert archives.refused
    assert (await plane.snapshot(workspace_id)).deleted


async def test_the_archive_of_an_undeleted_workspace_is_not_collected(plane: ControlPlane) -> None:
    """It is ARCHIVED at once, before its workflow has observed it."""
    workspace_id = await deleted(plane)
    due = await see_orphans(plane)
    await undelete(plane, workspace_id)
    assert (await plane.snapshot(workspace_id)).phase is Phase.ARCHIVED
    for moment in (due, due + GRACES.orphan):
        assert (await collect(collector(plane), moment)).collected == 0
    await expect_files_back(plane, workspace_id)


async def test_the_collector_waits_for_a_running_undelete(plane: ControlPlane) -> None:
    workspace_id = await deleted(plane)
    due = await see_orphans(plane)
    async with plane.database.transaction() as session:
        snapshot = await load_snapshot(session, workspace_id, for_update=True)
        assert snapshot is not None
        await save_deletion(session, deletion.undelete(snapshot), due)
        collecting = asyncio.create_task(collect(collector(plane), due))

        async def waits_or_has_not() -> bool:
            return await waits_for_a_lock(plane.database) or collecting.done()

        await until(waits_or_has_not, "the collector waits for the row")
    assert (await collecting).collected == 0
    await expect_files_back(plane, workspace_id)


async def waits_for_a_lock(database: Database) -> bool:
    async with database.transaction() as session:
        return bool(await session.scalar(text(WAITING)))


async def test_either_the_undelete_or_the_collector_wins(plane: ControlPlane) -> None:
    doomed = [await deleted(plane) for _ in range(RACES)]
    due = await see_orphans(plane)

    async def try_undelete(workspace_id: WorkspaceId) -> None:
        with suppress(InvalidState):
            await undelete(plane, workspace_id)

    await asyncio.gather(collect(collector(plane), due), *(try_undelete(each) for each in doomed))
    for workspace_id in doomed:
        snapshot = await plane.snapshot(workspace_id)
        assert (snapshot.archive_key in plane.archive_keys()) is not snapshot.deleted


async def test_a_workspace_whose_archive_was_collected_cannot_be_undeleted(plane: ControlPlane) -> None:
    workspace_id = await deleted(plane)
    await collect(collector(plane), await see_orphans(plane))
    assert plane.archive_keys() == set()
    with pytest.raises(InvalidState, match="has been removed"):
        await undelete(plane, workspace_id)
