"""Records what `test_replay.py` replays; run by `make histories` when a workflow is first released."""

import re
from pathlib import Path

from temporalio.client import Client

from codehub.contracts import workspace_workflow_id
from codehub.domain.failures import Transient
from codehub.domain.states import DesiredState, ErrorReason
from tests.fixtures_services import redis_client, redis_server
from tests.workflows.harness import ControlPlane
from tests.workflows.real import real_plane, temporal_client, temporal_server

__all__ = ["real_plane", "redis_client", "redis_server", "temporal_client", "temporal_server"]

HISTORIES = Path(__file__).with_name("histories")
# Who ran it and from where says something of the machine and nothing of the workflow.
OF_THE_MACHINE = re.compile(r'"(identity|stackTrace)": "(?:[^"\\]|\\.)*"')


async def save(client: Client, name: str, workflow_id: str) -> None:
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    text = OF_THE_MACHINE.sub(r'"\1": "-"', history.to_json())
    (HISTORIES / f"{name}.json").write_text(f"{text}\n")


async def test_record_the_life_of_a_workspace(real_plane: ControlPlane) -> None:
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


async def test_record_a_new_workspace_and_its_end(real_plane: ControlPlane) -> None:
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
        "retention": "RetentionWorkflow",
    }.items():
        workflow_id = await real_plane.run_sweep_as(workflow)
        await save(real_plane.client, name, workflow_id)
