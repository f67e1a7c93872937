"""Run `codehub up` as a person does, and use its API."""

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
from testkit.waiting import DEADLINE_SECONDS, until
from tests.codehub_command import CODEHUB

# The last line of its output.
READY = "Press Ctrl-C to stop it"
API_URL = re.compile(r"REST API: (http://\S+)/api/v1/openapi.json")
PASSWORD = re.compile(r"password +(\S+)")
WORKSPACES = "/api/v1/workspaces"

DEFAULTS: Mapping[str, str] = {}
# Longer than JupyterLab's polling interval of ten seconds: if polling counted as use, nothing would stop.
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
    """Run the command, stop it with Ctrl-C at the end, and yield the file with its output."""
    log = data_dir.with_suffix(".log")
    ports = choose_ports(["api", "proxy"], {})
    settings = {
        "CODEHUB_DATA_DIR": str(data_dir),
        "CODEHUB_SWEEPS_OBSERVE_SECONDS": "2",
        # Even if a Docker engine answers.
        "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local",
        # A developer's own CodeHub may use the default ports.
        "CODEHUB_API_PORT": str(ports["api"]),
        "CODEHUB_PROXY_PORT": str(ports["proxy"]),
        **wanted,
    }
    with log.open("wb") as output:
        process = subprocess.Popen((CODEHUB, "up"), env=os.environ | settings, stdout=output, stderr=output)
    try:
        yield log
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Credentials:
    """A personal token for the API and a session for a browser; both survive a restart."""

    token: str
    session: str


class Person:
    """A user of the API."""

    def __init__(self, url: str, credentials: Credentials) -> None:
        self.url = url
        self.credentials = credentials
        bearer = {"Authorization": f"Bearer {credentials.token}"}
        self.client = httpx.AsyncClient(base_url=url, headers=bearer, timeout=httpx.Timeout(90))

    async def create(self, **fields: str | int) -> WorkspaceId:
        """Create a workspace that starts; return its id at once."""
        form: dict[str, str | int] = {"name": "notes", "image_ref": "jupyterlab", **fields}
        return WorkspaceId((await self._request("POST", WORKSPACES, form))["id"])

    @asynccontextmanager
    async def workspace(self, **fields: str | int) -> AsyncIterator[WorkspaceId]:
        """Create a workspace and stop it at the end: its IDE would otherwise keep running."""
        workspace_id = await self.create(**fields)
        try:
            yield workspace_id
        except Exception as error:
            error.add_note(f"The log of {workspace_id}:\n{await self.read_log(workspace_id)}")
            raise
        finally:
            await self.move_to(workspace_id, "STANDBY")

    async def reset_stop_time(self, workspace_id: str) -> None:
        """Use the configured idle time again."""
        await self._request("PATCH", f"{WORKSPACES}/{workspace_id}", {"standby_ttl_seconds": None})

    async def is_at_rest(self, workspace_id: str, state: str) -> bool:
        """Whether the workspace is in this state and no operation runs."""
        seen = await self.read(workspace_id)
        return {seen["phase"], seen["desired_state"]} == {state} and seen["operation"] == "NONE"

    async def list_operations(self, workspace_id: str) -> list[str]:
        """Return all operations, oldest first."""
        return [
            each["operation"] for each in reversed((await self.read(workspace_id, "/operations"))["items"])
        ]

    async def move_to(self, workspace_id: str, desired: str) -> None:
        """Request a state until the workspace has reached it; an operation in progress refuses requests."""

        async def arrived() -> bool:
            answer = await self.client.patch(
                f"{WORKSPACES}/{workspace_id}", params={"wait": 30}, json={"desired_state": desired}
            )
            assert answer.status_code in {200, 409}, answer.text
            return answer.status_code == 200 and answer.json()["phase"] == desired

        await until(arrived, f"{workspace_id} in {desired}")

    async def read(self, workspace_id: str, what: str = "") -> dict[str, Any]:
        return await self._request("GET", f"{WORKSPACES}/{workspace_id}{what}")

    async def read_log(self, workspace_id: str) -> str:
        """Return the output of its IDE."""
        answer = await self.client.get(f"{WORKSPACES}/{workspace_id}/logs")
        return answer.text

    async def post(self, workspace_id: str, what: str, **form: str) -> dict[str, Any]:
        return await self._request("POST", f"{WORKSPACES}/{workspace_id}/{what}", form)

    async def _request(
        self, method: str, path: str, form: Mapping[str, str | int | None] | None = None
    ) -> dict[str, Any]:
        answer = await self.client.request(method, path, json=form)
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document


async def sign_in_first_time(url: str, output: str) -> Credentials:
    """Sign in with the password that `codehub up` prints once."""
    password = PASSWORD.search(output)
    assert password is not None
    return await sign_in(url, "admin", password[1])


async def sign_in(url: str, username: str, password: str, user_agent: str = "tests") -> Credentials:
    headers = {"User-Agent": user_agent}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=DEADLINE_SECONDS) as client:
        form = {"username": username, "password": password}
        session = (await client.post("/api/v1/login", json=form)).json()
        client.headers["X-CSRF-Token"] = session["csrf_token"]
        scopes = ["workspaces", "admin"] if session["user"]["role"] == "admin" else ["workspaces"]
        created = await client.post("/api/v1/tokens", json={"name": "laptop", "scopes": scopes})
        return Credentials(str(created.json()["token"]), client.cookies[PLAIN_COOKIE])


@asynccontextmanager
async def running_codehub(
    data_dir: Path, credentials: Credentials | None = None, settings: Mapping[str, str] = DEFAULTS
) -> AsyncIterator[tuple[Person, Deployment]]:
    with codehub_up(data_dir, settings) as output:

        async def ready() -> bool:
            return READY in output.read_text()

        await until(ready, "codehub up says that it is ready")
        variables = environment(load_config(DataDir(data_dir), Settings()))
        loaded = load_settings(variables)
        client = await connect_temporal(loaded)
        url = API_URL.search(output.read_text())
        assert url is not None
        person = Person(url[1], credentials or await sign_in_first_time(url[1], output.read_text()))
        async with open_database(loaded) as database, person.client:
            yield person, Deployment(loaded, variables, client, database, UUID(int=0))
