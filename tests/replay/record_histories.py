"""Records the histories for `test_replay.py`; run by `make histories` when a workflow is first released.

It never changes an existing history: released workflows must replay forever.
"""

import re
from datetime import UTC, datetime
from pathlib import Path

from temporalio.client import Client

from codehub.contracts import workspace_workflow_id
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason
from codehub.services.recovery import request_recovery
from codehub.services.requests import RequestContext
from testkit import postgres
from testkit.waiting import until
from tests.workflows.harness import LIMITS, ControlPlane
from tests.workflows.long_runs import long_run_plane
from tests.workflows.real import real_plane

__all__ = ["long_run_plane", "real_plane"]

HISTORIES = Path(__file__).with_name("histories")
# The identity names the machine and says nothing about the workflow.
OF_THE_MACHINE = re.compile(r'"(identity|stackTrace)": "(?:[^"\\]|\\.)*"')


async def save(client: Client, name: str, workflow_id: str) -> None:
    path = HISTORIES / f"{name}.json"
    if path.exists():
        return
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    text = OF_THE_MACHINE.sub(r'"\1": "-"', history.to_json())
    path.write_text(f"{text}\n")


async def test_record_the_lifecycle_of_a_workspace(real_plane: ControlPlane) -> None:
    plane = real_plane
    workspace_id = await plane.create(DesiredState.ARCHIVED)
    workflow_id = workspace_workflow_id(workspace_id)
    await plane.converge(workspace_id)
    await save(plane.client, "create_empty_archive", f"{workflow_id}-create_empty_archive")
    await plane.want(workspace_id, DesiredState.RUNNING)
    await plane.converge(workspace_id)
    await save(plane.client, "converge_up", workflow_id)
    await save(plane.client, "restoring", f"{workflow_id}-restoring")
    await save(plane.client, "starting", f"{workflow_id}-starting")
    plane.fail("jobs.archive", Transient(ErrorReason.ACTION_FAILED, "not now"))
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    await plane.converge(workspace_id)
    await save(plane.client, "converge_down_with_a_retry", workflow_id)
    await save(plane.client, "stopping", f"{workflow_id}-stopping")
    await save(plane.client, "archiving", f"{workflow_id}-archiving")


async def test_record_a_new_workspace_and_its_deletion(real_plane: ControlPlane) -> None:
    plane = real_plane
    workspace_id = await plane.reach(DesiredState.STANDBY)
    workflow_id = workspace_workflow_id(workspace_id)
    await save(plane.client, "provisioning", f"{workflow_id}-provisioning")
    await plane.delete(workspace_id, purge=True)
    await plane.converge(workspace_id)
    await save(plane.client, "converge_purge", workflow_id)
    await save(plane.client, "deleting", f"{workflow_id}-deleting")


async def test_record_an_error(real_plane: ControlPlane) -> None:
    workspace_id = await real_plane.reach(DesiredState.STANDBY)
    del real_plane.world.volumes[workspace_id]
    await real_plane.converge(workspace_id)
    await save(real_plane.client, "converge_halt", workspace_workflow_id(workspace_id))


async def test_record_the_sweeps(real_plane: ControlPlane) -> None:
    for name, workflow in {
        "ttl": "TtlWorkflow",
        "archive_gc": "ArchiveGcWorkflow",
        "observe": "ObserveWorkflow",
        "disk": "DiskWorkflow",
        "retention": "RetentionWorkflow",
    }.items():
        workflow_id = await real_plane.run_sweep_as(workflow)
        await save(real_plane.client, name, workflow_id)


async def converge_and_save(plane: ControlPlane, workspace_id: WorkspaceId, name: str) -> None:
    await plane.converge(workspace_id)
    await save(plane.client, name, workspace_workflow_id(workspace_id))


async def test_record_waits_and_a_released_claim(real_plane: ControlPlane) -> None:
    workspace_id = await real_plane.reach(DesiredState.STANDBY)
    real_plane.world.down.add(Resource.ARCHIVE)
    await real_plane.want(workspace_id, DesiredState.ARCHIVED)
    await converge_and_save(real_plane, workspace_id, "converge_wait")
    real_plane.world.down.clear()
    real_plane.world.dies_with["jobs.archive"] = Resource.ARCHIVE
    await converge_and_save(real_plane, workspace_id, "converge_release")


async def test_record_a_result_that_a_dead_run_left(real_plane: ControlPlane) -> None:
    workspace_id = await real_plane.create(
        DesiredState.STANDBY, operation="PROVISIONING", op_started_at=real_plane.now
    )
    real_plane.write(workspace_id, "precious")
    await converge_and_save(real_plane, workspace_id, "converge_settle")


async def test_record_a_recovery(real_plane: ControlPlane) -> None:
    workspace_id = await real_plane.reach(DesiredState.STANDBY)
    del real_plane.world.volumes[workspace_id]
    await real_plane.converge(workspace_id)
    await request_recovery(
        real_plane.database,
        workspace_id,
        RecoverChoice.START_EMPTY,
        context=RequestContext("test", LIMITS, datetime.now(UTC)),
    )
    await converge_and_save(real_plane, workspace_id, "converge_recover")


async def test_record_a_deletion(real_plane: ControlPlane) -> None:
    workspace_id = await real_plane.reach(DesiredState.RUNNING)
    await real_plane.delete(workspace_id)
    await converge_and_save(real_plane, workspace_id, "converge_delete")


async def test_record_a_purge_that_fails(real_plane: ControlPlane) -> None:
    workspace_id = await real_plane.reach(DesiredState.STANDBY)
    real_plane.fail("volumes.remove", *[Transient(ErrorReason.ACTION_FAILED, "It is stuck.")] * 3)
    await real_plane.delete(workspace_id, purge=True)
    await converge_and_save(real_plane, workspace_id, "converge_purge_that_fails")


async def test_record_runs_that_continue_as_new(long_run_plane: ControlPlane) -> None:
    workspace_id = await long_run_plane.create(DesiredState.RUNNING)
    handle = await long_run_plane.start(workspace_id)
    await handle.result()
    for number, run_id in enumerate((handle.first_execution_run_id, None)):
        run = long_run_plane.client.get_workflow_handle(handle.id, run_id=run_id)
        path = HISTORIES / f"converge_continued_{number}.json"
        if not path.exists():
            text = OF_THE_MACHINE.sub(r'"\1": "-"', (await run.fetch_history()).to_json())
            path.write_text(f"{text}\n")


async def test_record_an_outage_of_the_database(
    real_plane: ControlPlane, postgres_server: postgres.Server, database_url: str
) -> None:
    workspace_id = await real_plane.create(DesiredState.STANDBY)
    async with postgres.outage(postgres_server, database_url):
        handle = await real_plane.start(workspace_id)

        async def waits() -> bool:
            history = await handle.fetch_history()
            return any(event.HasField("timer_fired_event_attributes") for event in history.events)

        await until(waits, "a retry that waits for a timer")
    await handle.result()
    await save(real_plane.client, "converge_database_outage", handle.id)
