"""`codehub up` on an empty directory, and a workspace with a real JupyterLab through its whole life."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from codehub.adapters.local.instances import LocalInstances
from codehub.bootstrap import connect_temporal, local_root_of, open_database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.embedded.data_dir import DataDir
from codehub.embedded.servers import environment, last_known
from codehub.settings import Settings, load_settings
from tests.chaos.site import Site
from tests.rows import add_user, add_workspace
from tests.waiting import until

READY = "CodeHub is ready"
NOTE = "every file comes back\n"


@contextmanager
def codehub_up(data_dir: Path) -> Iterator[Path]:
    """The command as a person runs it, stopped with Ctrl-C; yields the file with what it said."""
    said = data_dir.with_suffix(".log")
    command = (Path(sys.executable).with_name("codehub"), "up")
    settings = {"CODEHUB_DATA_DIR": str(data_dir), "CODEHUB_SWEEPS_OBSERVE_SECONDS": "2"}
    with said.open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=output, stderr=output)
    try:
        yield said
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0, said.read_text()
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def running_site(data_dir: Path) -> AsyncIterator[Site]:
    with codehub_up(data_dir) as said:

        async def ready() -> bool:
            return READY in said.read_text()

        await until(ready, "codehub up says that it is ready")
        variables = environment(last_known(DataDir(data_dir), Settings()))
        settings = load_settings(variables)
        client = await connect_temporal(settings)
        async with open_database(settings) as database:
            async with database.transaction() as session:
                owner = await add_user(session)
            yield Site(settings, variables, client, database, owner)


async def create(site: Site) -> WorkspaceId:
    async with site.database.transaction() as session:
        workspace_id = await add_workspace(
            session,
            site.owner,
            desired_state=DesiredState.RUNNING,
            phase_changed_at=datetime.now(UTC),
            image_ref="jupyterlab",
        )
    await site.wake(workspace_id)
    await site.arrive(workspace_id, Phase.RUNNING)
    return workspace_id


async def ask_ide(site: Site, workspace_id: WorkspaceId, method: str, **body: object) -> dict[str, object]:
    """The contents API of the workspace's JupyterLab, as the proxy will reach it."""
    upstream = await LocalInstances(local_root_of(site.settings)).find_upstream(workspace_id)
    assert upstream is not None
    url = f"http://{upstream.host}:{upstream.port}/w/{workspace_id}/api/contents/notes.txt"
    async with (
        aiohttp.ClientSession(headers=dict(upstream.headers)) as session,
        session.request(method, url, json=body or None) as response,
    ):
        response.raise_for_status()
        answer: dict[str, object] = await response.json()
        return answer


@pytest.mark.timeout(300)
async def test_a_workspace_lives_through_every_state_with_its_files(tmp_path: Path) -> None:
    data_dir = tmp_path / "codehub"
    async with running_site(data_dir) as site:
        workspace_id = await create(site)
        await ask_ide(site, workspace_id, "PUT", type="file", format="text", content=NOTE)
        await site.go(workspace_id, DesiredState.ARCHIVED)
        assert not site.home(workspace_id).exists()
        await site.go(workspace_id, DesiredState.RUNNING)
        assert (await ask_ide(site, workspace_id, "GET"))["content"] == NOTE
        await expect_operations_in_temporal(site, workspace_id)
        await heals_a_killed_ide(site, workspace_id)
        await site.go(workspace_id, DesiredState.STANDBY)
    # Started again, it finds everything where it was.
    async with running_site(data_dir) as site:
        await site.go(workspace_id, DesiredState.RUNNING)
        assert (await ask_ide(site, workspace_id, "GET"))["content"] == NOTE
        await site.go(workspace_id, DesiredState.STANDBY)
        await notices_a_lost_home(site, workspace_id)


async def expect_operations_in_temporal(site: Site, workspace_id: WorkspaceId) -> None:
    expected = {"Provisioning", "Starting", "Stopping", "Archiving", "Restoring"}

    async def listed() -> bool:
        query = f'WorkspaceId = "{workspace_id}" AND WorkflowType != "WorkspaceWorkflow"'
        return {run.workflow_type async for run in site.client.list_workflows(query)} == expected

    await until(listed, "every operation by its name in Temporal")


async def heals_a_killed_ide(site: Site, workspace_id: WorkspaceId) -> None:
    """Behind the system's back; nobody wakes it but the sweep."""
    before = (await site.look(workspace_id)).conditions.container_ready.last_transition_time
    await LocalInstances(local_root_of(site.settings)).stop(workspace_id)

    async def started_again() -> bool:
        snapshot = await site.look(workspace_id)
        ready = snapshot.conditions.container_ready
        return ready.is_true and ready.last_transition_time != before

    await until(started_again, "the sweep started the IDE again")
    await site.arrive(workspace_id, Phase.RUNNING)


async def notices_a_lost_home(site: Site, workspace_id: WorkspaceId) -> None:
    await asyncio.to_thread(shutil.rmtree, site.home(workspace_id))

    async def lost() -> bool:
        snapshot = await site.look(workspace_id)
        return (snapshot.phase, snapshot.error_reason) == (Phase.ERROR, ErrorReason.DATA_LOST)

    await until(lost, "the sweep noticed the lost home")
    assert (await site.look(workspace_id)).operation is Operation.NONE
    assert not site.home(workspace_id).exists()
