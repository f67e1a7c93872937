"""`codehub up` on an empty directory, and a workspace with a real JupyterLab through its whole life."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import httpx
import pytest

from codehub.adapters.local.instances import LocalInstances
from codehub.bootstrap import connect_temporal, local_root_of, open_database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import ErrorReason, Operation, Phase
from codehub.embedded.data_dir import DataDir
from codehub.embedded.ports import choose_ports
from codehub.embedded.servers import environment, last_known
from codehub.settings import Settings, load_settings
from tests.chaos.site import Site
from tests.waiting import until

# The last line that it prints: everything else has been said by then.
READY = "Ctrl-C stops it"
NOTE = "every file comes back\n"
API_URL = re.compile(r"REST API: (http://\S+)/api/v1/openapi.json")
PASSWORD = re.compile(r"password +(\S+)")
WORKSPACES = "/api/v1/workspaces"


@contextmanager
def codehub_up(data_dir: Path) -> Iterator[Path]:
    """The command as a person runs it, stopped with Ctrl-C; yields the file with what it said."""
    said = data_dir.with_suffix(".log")
    command = (Path(sys.executable).with_name("codehub"), "up")
    settings = {
        "CODEHUB_DATA_DIR": str(data_dir),
        "CODEHUB_SWEEPS_OBSERVE_SECONDS": "2",
        # The usual port may be in use by a CodeHub of whoever runs the tests.
        "CODEHUB_API_PORT": str(choose_ports(["api"], {})["api"]),
    }
    with said.open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=output, stderr=output)
    try:
        yield said
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0, said.read_text()
    finally:
        process.kill()
        process.wait()


class Person:
    """Somebody at the API, with a personal token."""

    def __init__(self, url: str, token: str) -> None:
        self.token = token
        self.client = httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=httpx.Timeout(90)
        )

    async def create(self) -> WorkspaceId:
        form = {"name": "notes", "image_ref": "jupyterlab"}
        created = (await self._ask("POST", WORKSPACES, form))["id"]
        await self.go(created, "RUNNING")
        return WorkspaceId(created)

    async def go(self, workspace_id: str, desired: str) -> None:
        """Ask for a state, and again while an operation runs, until it has arrived."""

        async def arrived() -> bool:
            answer = await self.client.patch(
                f"{WORKSPACES}/{workspace_id}", params={"wait": 30}, json={"desired_state": desired}
            )
            assert answer.status_code in {200, 409}, answer.text
            return answer.status_code == 200 and answer.json()["phase"] == desired

        await until(arrived, f"{workspace_id} in {desired}")

    async def read(self, workspace_id: str, what: str = "") -> dict[str, Any]:
        return await self._ask("GET", f"{WORKSPACES}/{workspace_id}{what}")

    async def ask(self, workspace_id: str, what: str, **form: str) -> dict[str, Any]:
        return await self._ask("POST", f"{WORKSPACES}/{workspace_id}/{what}", form)

    async def _ask(self, method: str, path: str, form: dict[str, str] | None = None) -> dict[str, Any]:
        answer = await self.client.request(method, path, json=form)
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document


async def sign_in(url: str, said: str) -> str:
    """With the password that was shown once; the token outlives the restart."""
    password = PASSWORD.search(said)
    assert password is not None
    async with httpx.AsyncClient(base_url=url) as client:
        form = {"username": "admin", "password": password[1]}
        session = (await client.post("/api/v1/login", json=form)).json()
        client.headers["X-CSRF-Token"] = session["csrf_token"]
        created = await client.post("/api/v1/tokens", json={"name": "laptop"})
        return str(created.json()["token"])


@asynccontextmanager
async def running_codehub(data_dir: Path, token: str | None = None) -> AsyncIterator[tuple[Person, Site]]:
    with codehub_up(data_dir) as said:

        async def ready() -> bool:
            return READY in said.read_text()

        await until(ready, "codehub up says that it is ready")
        variables = environment(last_known(DataDir(data_dir), Settings()))
        settings = load_settings(variables)
        client = await connect_temporal(settings)
        url = API_URL.search(said.read_text())
        assert url is not None
        person = Person(url[1], token or await sign_in(url[1], said.read_text()))
        async with open_database(settings) as database, person.client:
            yield person, Site(settings, variables, client, database, UUID(int=0))


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
    async with running_codehub(data_dir) as (person, site):
        workspace_id = await person.create()
        await ask_ide(site, workspace_id, "PUT", type="file", format="text", content=NOTE)
        await person.go(workspace_id, "ARCHIVED")
        assert not site.home(workspace_id).exists()
        await person.go(workspace_id, "RUNNING")
        assert (await ask_ide(site, workspace_id, "GET"))["content"] == NOTE
        await expect_operations_in_temporal(site, workspace_id)
        await heals_a_killed_ide(site, workspace_id)
        await person.go(workspace_id, "STANDBY")
    # Started again, it finds everything where it was.
    async with running_codehub(data_dir, person.token) as (person, site):
        await person.go(workspace_id, "RUNNING")
        assert (await ask_ide(site, workspace_id, "GET"))["content"] == NOTE
        await person.go(workspace_id, "STANDBY")
        await notices_a_lost_home(site, workspace_id)
        await recovers_from_the_archive(person, site, workspace_id)
        await comes_back_after_a_deletion(person, site, workspace_id)


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


async def recovers_from_the_archive(person: Person, site: Site, workspace_id: WorkspaceId) -> None:
    error = (await person.read(workspace_id))["error"]
    assert error["reason"] == "DataLost"
    assert error["recover_choices"] == ["retry", "restore_archive", "start_empty"]
    await person.ask(workspace_id, "recover", choice="restore_archive")

    async def restored() -> bool:
        return bool((await person.read(workspace_id))["phase"] == "STANDBY")

    await until(restored, "the last archive is restored")
    await person.go(workspace_id, "RUNNING")
    assert (await ask_ide(site, workspace_id, "GET"))["content"] == NOTE


async def comes_back_after_a_deletion(person: Person, site: Site, workspace_id: WorkspaceId) -> None:
    deleted = await person.client.delete(f"{WORKSPACES}/{workspace_id}")
    assert (deleted.status_code, deleted.json()["purge"]) == (202, False)

    async def gone() -> bool:
        return (await person.client.get(f"{WORKSPACES}/{workspace_id}")).status_code == 404

    await until(gone, "the workspace is deleted")
    assert not site.home(workspace_id).exists()
    await person.ask(workspace_id, "undelete")
    await person.go(workspace_id, "RUNNING")
    assert (await ask_ide(site, workspace_id, "GET"))["content"] == NOTE
    # An instance outlives everything else, and nobody would end this one.
    await person.go(workspace_id, "STANDBY")
