"""`codehub up` as a person runs it, and somebody who uses it."""

import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from codehub.bootstrap import connect_temporal, open_database
from codehub.domain.conditions import WorkspaceId
from codehub.embedded.data_dir import DataDir
from codehub.embedded.free_ports import choose_ports
from codehub.embedded.servers.registry import environment, load_config
from codehub.origins import PLAIN_COOKIE
from codehub.settings import Settings, load_settings
from testkit.deployment import Deployment
from testkit.waiting import until
from tests.codehub_command import CODEHUB

# The last line that it prints: everything else has been said by then.
READY = "Ctrl-C stops it"
API_URL = re.compile(r"REST API: (http://\S+)/api/v1/openapi.json")
PASSWORD = re.compile(r"password +(\S+)")
WORKSPACES = "/api/v1/workspaces"

DEFAULTS: Mapping[str, str] = {}
# Longer than the ten seconds between two rounds of JupyterLab's polling: if that counted, nothing would stop.
STANDBY_SECONDS = 12
SWEEP_SECONDS = 3
QUICK_TO_STOP = {
    "TTL_STANDBY_SECONDS": str(STANDBY_SECONDS),
    "CODEHUB_SWEEPS_TTL_SECONDS": str(SWEEP_SECONDS),
    "CODEHUB_PROXY_ACTIVITY_SECONDS": "1",
}
HOUR_SECONDS = 3600


@contextmanager
def codehub_up(data_dir: Path, wanted: Mapping[str, str] = DEFAULTS) -> Iterator[Path]:
    """The command as a person runs it, stopped with Ctrl-C; yields the file with what it said."""
    said = data_dir.with_suffix(".log")
    ports = choose_ports(["api", "proxy"], {})
    settings = {
        "CODEHUB_DATA_DIR": str(data_dir),
        "CODEHUB_SWEEPS_OBSERVE_SECONDS": "2",
        # Also where a Docker engine would do.
        "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local",
        # The usual ports may be in use by a CodeHub of whoever runs the tests.
        "CODEHUB_API_PORT": str(ports["api"]),
        "CODEHUB_PROXY_PORT": str(ports["proxy"]),
        **wanted,
    }
    with said.open("wb") as output:
        process = subprocess.Popen((CODEHUB, "up"), env=os.environ | settings, stdout=output, stderr=output)
    try:
        yield said
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0, said.read_text()
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Credentials:
    """A personal token for the API and a session for a browser; both outlive a restart."""

    token: str
    session: str


class Person:
    """Somebody at the API."""

    def __init__(self, url: str, credentials: Credentials) -> None:
        self.url = url
        self.credentials = credentials
        bearer = {"Authorization": f"Bearer {credentials.token}"}
        self.client = httpx.AsyncClient(base_url=url, headers=bearer, timeout=httpx.Timeout(90))

    async def create(self, **fields: str | int) -> WorkspaceId:
        """A new workspace, asked to run: that takes a while."""
        form: dict[str, str | int] = {"name": "notes", "image_ref": "jupyterlab", **fields}
        return WorkspaceId((await self._ask("POST", WORKSPACES, form))["id"])

    @asynccontextmanager
    async def workspace(self, **fields: str | int) -> AsyncIterator[WorkspaceId]:
        """A new one, stopped at the end of the block: its instance would outlive everything else."""
        workspace_id = await self.create(**fields)
        try:
            yield workspace_id
        except Exception as error:
            error.add_note(f"The log of {workspace_id}:\n{await self.read_log(workspace_id)}")
            raise
        finally:
            await self.move_to(workspace_id, "STANDBY")

    async def give_back_ttl(self, workspace_id: str) -> None:
        """From now on it may go unused for as long as the others."""
        await self._ask("PATCH", f"{WORKSPACES}/{workspace_id}", {"standby_ttl_seconds": None})

    async def finds(self, workspace_id: str, state: str) -> bool:
        """Whether it is there, shall stay there, and nothing goes on."""
        seen = await self.read(workspace_id)
        return {seen["phase"], seen["desired_state"]} == {state} and seen["operation"] == "NONE"

    async def list_operations(self, workspace_id: str) -> list[str]:
        """All that there were, in their order."""
        return [
            each["operation"] for each in reversed((await self.read(workspace_id, "/operations"))["items"])
        ]

    async def move_to(self, workspace_id: str, desired: str) -> None:
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

    async def read_log(self, workspace_id: str) -> str:
        """What its IDE has written."""
        answer = await self.client.get(f"{WORKSPACES}/{workspace_id}/logs")
        return answer.text

    async def ask(self, workspace_id: str, what: str, **form: str) -> dict[str, Any]:
        return await self._ask("POST", f"{WORKSPACES}/{workspace_id}/{what}", form)

    async def _ask(
        self, method: str, path: str, form: Mapping[str, str | int | None] | None = None
    ) -> dict[str, Any]:
        answer = await self.client.request(method, path, json=form)
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document


async def sign_in(url: str, said: str) -> Credentials:
    """With the password that was shown once."""
    password = PASSWORD.search(said)
    assert password is not None
    return await enter(url, "admin", password[1])


async def enter(url: str, username: str, password: str) -> Credentials:
    async with httpx.AsyncClient(base_url=url) as client:
        form = {"username": username, "password": password}
        session = (await client.post("/api/v1/login", json=form)).json()
        client.headers["X-CSRF-Token"] = session["csrf_token"]
        created = await client.post("/api/v1/tokens", json={"name": "laptop"})
        return Credentials(str(created.json()["token"]), client.cookies[PLAIN_COOKIE])


@asynccontextmanager
async def running_codehub(
    data_dir: Path, credentials: Credentials | None = None, settings: Mapping[str, str] = DEFAULTS
) -> AsyncIterator[tuple[Person, Deployment]]:
    with codehub_up(data_dir, settings) as said:

        async def ready() -> bool:
            return READY in said.read_text()

        await until(ready, "codehub up says that it is ready")
        variables = environment(load_config(DataDir(data_dir), Settings()))
        loaded = load_settings(variables)
        client = await connect_temporal(loaded)
        url = API_URL.search(said.read_text())
        assert url is not None
        person = Person(url[1], credentials or await sign_in(url[1], said.read_text()))
        async with open_database(loaded) as database, person.client:
            yield person, Deployment(loaded, variables, client, database, UUID(int=0))
