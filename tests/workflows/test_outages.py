"""An outage of a provider locks no one out, and its history is bounded however long it lasts."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update
from temporalio.client import WorkflowHandle

from codehub.contracts import workspace_workflow_id
from codehub.db.models import Workspace
from codehub.db.sweeps import not_converged
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.services.errors import OperationInProgress
from testkit import postgres
from testkit.waiting import until
from tests.workflows.harness import ControlPlane
from workflows.descriptions import NEXT_SWEEP

OBSERVE = "ObserveWorkflow"
SWEEP_SECONDS = 15
# The bounds for a day of outage and for a transfer of twelve hours.
MOST_EVENTS = 500


async def interrupted_archiving(plane: ControlPlane) -> WorkspaceId:
    """The archive store fails in the middle of ARCHIVING."""
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.write(workspace_id, "precious")
    plane.world.dies_with["jobs.archive"] = Resource.ARCHIVE
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    await plane.converge(workspace_id)
    return workspace_id


async def test_an_outage_in_the_middle_of_archiving_gives_the_claim_back(plane: ControlPlane) -> None:
    workspace_id = await interrupted_archiving(plane)
    waiting = await plane.snapshot(workspace_id)
    assert (waiting.phase, waiting.operation) == (Phase.STANDBY, Operation.NONE)
    assert waiting.waiting_for == (Resource.ARCHIVE,)
    assert waiting.waiting_since is not None
    assert [each.kind for each in await plane.events(workspace_id)][-1] == "operation_released"


async def test_people_can_start_a_workspace_whose_archiving_an_outage_interrupted(
    plane: ControlPlane,
) -> None:
    workspace_id = await interrupted_archiving(plane)
    await plane.want(workspace_id, DesiredState.RUNNING)
    running = await plane.converge(workspace_id)
    assert (running.phase, running.waiting_for, running.waiting_since) == (Phase.RUNNING, (), None)
    assert plane.read(workspace_id) == "precious"


async def test_people_can_purge_a_workspace_whose_archiving_an_outage_interrupted(
    plane: ControlPlane,
) -> None:
    workspace_id = await interrupted_archiving(plane)
    await plane.delete(workspace_id, purge=True)
    assert (await plane.converge(workspace_id)).phase is Phase.DELETED


async def test_an_interrupted_start_keeps_its_slot_until_somebody_sees_its_container(
    plane: ControlPlane,
) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.world.dies_with["instances.start"] = Resource.CONTAINER
    await plane.want(workspace_id, DesiredState.RUNNING)
    await plane.converge(workspace_id)
    await plane.want(workspace_id, DesiredState.STANDBY)
    waiting = await plane.converge(workspace_id)
    assert (waiting.phase, waiting.operation) == (Phase.STANDBY, Operation.NONE)
    assert waiting.conditions.container_exists
    plane.world.down.clear()
    await plane.run_sweep(OBSERVE)
    stopped = await plane.converge(workspace_id)
    assert not stopped.conditions.container_exists


async def test_archiving_continues_when_the_store_is_back(plane: ControlPlane) -> None:
    workspace_id = await interrupted_archiving(plane)
    plane.world.down.clear()
    assert (await plane.run_sweep(OBSERVE))["not_converged"] == 1
    archived = await plane.converge(workspace_id)
    assert (archived.phase, archived.error_count, archived.waiting_for) == (Phase.ARCHIVED, 0, ())
    assert plane.read_archived(archived.archive_key) == "precious"


async def test_once_the_archive_is_committed_the_claim_is_held(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.world.dies_with["volumes.remove"] = Resource.ARCHIVE
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    held = await plane.converge(workspace_id)
    assert (held.phase, held.operation) == (Phase.ARCHIVED, Operation.ARCHIVING)
    assert held.waiting_for == (Resource.ARCHIVE,)
    with pytest.raises(OperationInProgress):
        await plane.want(workspace_id, DesiredState.RUNNING)
    plane.world.down.clear()
    assert (await plane.converge(workspace_id)).phase is Phase.ARCHIVED
    assert workspace_id not in plane.world.volumes


async def count_new_events(plane: ControlPlane, workspace_id: WorkspaceId) -> int:
    """Return the events of the current or last run of the workflow."""
    handle = plane.client.get_workflow_handle(workspace_workflow_id(workspace_id))
    return len((await handle.fetch_history()).events)


async def runs_of(plane: ControlPlane, workspace_id: WorkspaceId) -> str:
    handle = plane.client.get_workflow_handle(workspace_workflow_id(workspace_id))
    return (await handle.describe()).run_id


async def test_a_day_of_outage_costs_no_run_at_all(plane: ControlPlane) -> None:
    workspace_id = await interrupted_archiving(plane)
    run = await runs_of(plane, workspace_id)
    # All sweeps of a day do the same, so a few are enough.
    for _ in range(20):
        assert (await plane.run_sweep(OBSERVE))["not_converged"] == 0
    assert await runs_of(plane, workspace_id) == run


async def test_a_store_that_lacks_this_archive_costs_few_observations_a_day(
    plane: ControlPlane,
) -> None:
    workspace_id = await plane.reach(DesiredState.ARCHIVED)
    await plane.want(workspace_id, DesiredState.RUNNING)
    began = now = datetime.now(UTC)
    events = looks = 0
    while now < began + timedelta(days=1):
        plane.fail("archives.look", Transient(ErrorReason.UNREACHABLE, "Forbidden, for now."))
        await plane.converge(workspace_id)
        events += await count_new_events(plane, workspace_id)
        looks += 1
        now = await next_sweep_that_looks(plane, began=began, looked=now)
    assert looks > 10
    assert events <= MOST_EVENTS


async def next_sweep_that_looks(plane: ControlPlane, *, began: datetime, looked: datetime) -> datetime:
    """Date the wait and the last observation, and return which later sweeps would observe again."""
    async with plane.database.transaction() as session:
        await session.execute(update(Workspace).values(waiting_since=began, observed_at=looked))
        now = looked + timedelta(seconds=SWEEP_SECONDS)
        while not await not_converged(session, 1, now=now):
            now += timedelta(seconds=SWEEP_SECONDS)
        return now


async def test_a_transfer_of_twelve_hours_gets_no_signals_from_the_sweeps(
    plane: ControlPlane, own_time: None
) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    gate = plane.world.gates["jobs.archive"] = asyncio.Event()
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    handle = await plane.start(workspace_id)

    async def under_way() -> bool:
        return ("jobs.archive", workspace_id) in plane.world.calls

    await until(under_way, "ARCHIVING under way")
    before = await length(handle)
    for _ in range(20):
        assert (await plane.run_sweep(OBSERVE))["not_converged"] == 1
    # Each of the 2,880 sweeps in twelve hours does the same.
    assert await length(handle) == before
    assert before <= MOST_EVENTS
    gate.set()
    await handle.result()


async def length(handle: WorkflowHandle[object, str]) -> int:
    return len((await handle.fetch_history()).events)


async def test_a_long_outage_of_the_database_ends_the_run_and_not_the_operation(
    plane: ControlPlane, postgres_server: postgres.Server, database_url: str
) -> None:
    workspace_id = await plane.create(DesiredState.STANDBY)
    async with postgres.outage(postgres_server, database_url):
        handle = await plane.start(workspace_id)
        told = await handle.result()
    assert "not currently accepting connections" in told
    assert told.endswith(NEXT_SWEEP)
    assert await length(handle) <= MOST_EVENTS
    assert (await plane.run_sweep(OBSERVE))["not_converged"] == 1
    assert (await plane.converge(workspace_id)).phase is Phase.STANDBY


async def test_a_purge_that_cannot_finish_retries_less_and_less_often(plane: ControlPlane) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.fail("volumes.remove", *[Transient(ErrorReason.ACTION_FAILED, "It is stuck.")] * 5)
    await plane.delete(workspace_id, purge=True)
    stuck = await plane.converge(workspace_id)
    assert (stuck.phase, stuck.operation, stuck.error_count) == (Phase.DELETING, Operation.NONE, 3)
    assert stuck.error_reason is ErrorReason.RETRY_EXCEEDED
    assert (await plane.run_sweep(OBSERVE))["not_converged"] == 0
    for attempts in (4, 5):
        await make_due(plane, workspace_id)
        assert (await plane.run_sweep(OBSERVE))["not_converged"] == 1
        snapshot = await plane.converge(workspace_id)
        assert (snapshot.phase, snapshot.error_count) == (Phase.DELETING, attempts)
    await make_due(plane, workspace_id)
    assert (await plane.converge(workspace_id)).phase is Phase.DELETED


async def make_due(plane: ControlPlane, workspace_id: WorkspaceId) -> None:
    """Move the next attempt into the past instead of waiting for it."""
    retry_at = (await plane.snapshot(workspace_id)).retry_at
    assert retry_at is not None
    assert retry_at > datetime.now(UTC)
    async with plane.database.transaction() as session:
        await session.execute(update(Workspace).values(retry_at=datetime.now(UTC)))
