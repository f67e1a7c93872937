"""`codehub up` on an empty directory, and the whole life of a workspace with a real JupyterLab."""

import asyncio
import shutil
from pathlib import Path

import aiohttp
import pytest

from codehub.adapters.local.instances import LocalInstances
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import ErrorReason, Operation, Phase
from codehub.providers import local_root_of
from codehub.unix_sockets import connectable
from testkit.deployment import Deployment
from testkit.waiting import until
from tests.e2e.harness import WORKSPACES, Person, running_codehub

NOTE = "every file comes back\n"


async def ask_ide(
    deployment: Deployment, workspace_id: WorkspaceId, method: str, **body: object
) -> dict[str, object]:
    """Send a request to the contents API of the workspace's JupyterLab."""
    upstream = await LocalInstances(local_root_of(deployment.settings)).find_upstream(workspace_id)
    assert upstream is not None
    url = "http://localhost/api/contents/notes.txt"
    with connectable(upstream.host) as path:
        connector = aiohttp.UnixConnector(path)
        async with (
            aiohttp.ClientSession(headers=dict(upstream.headers), connector=connector) as session,
            session.request(method, url, json=body or None) as response,
        ):
            response.raise_for_status()
            answer: dict[str, object] = await response.json()
            return answer


@pytest.mark.timeout(600)
async def test_a_workspace_lives_through_every_state_with_its_files(tmp_path: Path) -> None:
    data_dir = tmp_path / "codehub"
    async with running_codehub(data_dir) as (person, deployment):
        workspace_id = await person.create()
        await person.move_to(workspace_id, "RUNNING")
        await ask_ide(deployment, workspace_id, "PUT", type="file", format="text", content=NOTE)
        await person.move_to(workspace_id, "ARCHIVED")
        assert not deployment.home(workspace_id).exists()
        await person.move_to(workspace_id, "RUNNING")
        assert (await ask_ide(deployment, workspace_id, "GET"))["content"] == NOTE
        await expect_operations_in_temporal(deployment, workspace_id)
        await check_killed_ide_restarts(deployment, workspace_id)
        await person.move_to(workspace_id, "STANDBY")
    # After a restart everything is where it was.
    async with running_codehub(data_dir, person.credentials) as (person, deployment):
        await person.move_to(workspace_id, "RUNNING")
        assert (await ask_ide(deployment, workspace_id, "GET"))["content"] == NOTE
        await person.move_to(workspace_id, "STANDBY")
        await check_lost_home_is_noticed(deployment, workspace_id)
        await check_recovery_from_archive(person, deployment, workspace_id)
        await check_undelete(person, deployment, workspace_id)


async def expect_operations_in_temporal(deployment: Deployment, workspace_id: WorkspaceId) -> None:
    expected = {"Provisioning", "Starting", "Stopping", "Archiving", "Restoring"}

    async def listed() -> bool:
        query = f'WorkspaceId = "{workspace_id}" AND WorkflowType != "WorkspaceWorkflow"'
        return {run.workflow_type async for run in deployment.client.list_workflows(query)} == expected

    await until(listed, "every operation by its name in Temporal")


async def check_killed_ide_restarts(deployment: Deployment, workspace_id: WorkspaceId) -> None:
    """Kill the IDE directly, so that only the sweep notices."""
    before = (await deployment.look(workspace_id)).conditions.container_ready.last_transition_time
    await LocalInstances(local_root_of(deployment.settings)).stop(workspace_id)

    async def started_again() -> bool:
        snapshot = await deployment.look(workspace_id)
        ready = snapshot.conditions.container_ready
        return ready.is_true and ready.last_transition_time != before

    await until(started_again, "the sweep started the IDE again")
    await deployment.wait_for_phase(workspace_id, Phase.RUNNING)


async def check_lost_home_is_noticed(deployment: Deployment, workspace_id: WorkspaceId) -> None:
    await asyncio.to_thread(shutil.rmtree, deployment.home(workspace_id))

    async def lost() -> bool:
        snapshot = await deployment.look(workspace_id)
        return (snapshot.phase, snapshot.error_reason) == (Phase.ERROR, ErrorReason.DATA_LOST)

    await until(lost, "the sweep noticed the lost home")
    assert (await deployment.look(workspace_id)).operation is Operation.NONE
    assert not deployment.home(workspace_id).exists()


async def check_recovery_from_archive(
    person: Person, deployment: Deployment, workspace_id: WorkspaceId
) -> None:
    error = (await person.read(workspace_id))["error"]
    assert error["reason"] == "DataLost"
    assert error["recover_choices"] == ["retry", "restore_archive", "start_empty"]
    await person.post(workspace_id, "recover", choice="restore_archive")

    async def restored() -> bool:
        return bool((await person.read(workspace_id))["phase"] == "STANDBY")

    await until(restored, "the last archive is restored")
    await person.move_to(workspace_id, "RUNNING")
    assert (await ask_ide(deployment, workspace_id, "GET"))["content"] == NOTE


async def check_undelete(person: Person, deployment: Deployment, workspace_id: WorkspaceId) -> None:
    deleted = await person.client.delete(f"{WORKSPACES}/{workspace_id}")
    assert (deleted.status_code, deleted.json()["purge"]) == (202, False)

    async def gone() -> bool:
        return (await person.client.get(f"{WORKSPACES}/{workspace_id}")).status_code == 404

    await until(gone, "the workspace is deleted")
    assert not deployment.home(workspace_id).exists()
    await person.post(workspace_id, "undelete")
    await person.move_to(workspace_id, "RUNNING")
    assert (await ask_ide(deployment, workspace_id, "GET"))["content"] == NOTE
    # The IDE would otherwise keep running.
    await person.move_to(workspace_id, "STANDBY")
