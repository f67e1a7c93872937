"""A CodeHub in one origin mode: Alice has two workspaces, and Mallory's code runs in the first."""

import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import httpx
from sqlalchemy import func, select

from codehub.db.models import ApiToken, Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Phase
from codehub.origins import PLAIN_COOKIE
from codehub.services.passwords import Passwords
from codehub.services.users import add_user
from testkit.deployment import Deployment, Servers, open_deployment
from testkit.processes import free_port
from testkit.rows import BY
from testkit.service_process import running_service
from testkit.waiting import DEADLINE_SECONDS
from tests.attacks.workspace_pages import pages, publish
from tests.identities import CHEAP

PASSWORD = "correct horse battery"  # noqa: S105
ALICE = "alice-whose-name-is-secret"
MALLORY = "mallory"
WORKSPACES = 2
# On these ports, the hostile workspace serves the same pages.
PORT, OTHER_PORT = 3000, 4000
UNLIMITED = {"CODEHUB_API_REQUESTS_PER_SECOND": "100000", "CODEHUB_API_SIGN_INS_PER_MINUTE": "100000"}


@dataclass(frozen=True)
class Mode:
    """An origin mode: the host name that people use, and the settings."""

    host: str
    settings: Mapping[str, str] = field(default_factory=dict)


PATH = {"CODEHUB_WORKSPACES_ORIGINS": "path"}
MODES = {
    "subdomain": Mode("localhost"),
    # Browsers send no Sec-Fetch headers to plain-http names, and treat all workspaces there as one site.
    "subdomain on a plain-http host name": Mode("hub.test", {"CODEHUB_WORKSPACES_DOMAIN": "spaces.test"}),
    "port": Mode("localhost", {"CODEHUB_WORKSPACES_ORIGINS": "port"}),
    "path": Mode("localhost", PATH),
}


@dataclass(frozen=True)
class RunningWorkspaces:
    """The workspaces, which run during all tests; every mode has its own API and proxy."""

    deployment: Deployment
    hostile: WorkspaceId
    neighbor: WorkspaceId
    secret: str

    def requests_of(self, workspace_id: WorkspaceId, port: int | None = None) -> str:
        """Return all requests that a workspace's server, or the one on this port, has received."""
        name = "requests" if port is None else f"requests-{port}"
        log = self.deployment.home(workspace_id) / name
        return log.read_text(errors="replace") if log.exists() else ""

    async def count_changes(self, marker: str) -> int:
        """Return how many of Alice's tokens and workspaces are named like the attempt."""
        named = (
            select(func.count()).select_from(ApiToken).where(ApiToken.name == marker),
            select(func.count()).select_from(Workspace).where(Workspace.memo == marker),
            select(func.count()).select_from(Workspace).where(Workspace.name == marker),
        )
        async with self.deployment.database.transaction() as session:
            return sum([(await session.execute(each)).scalar_one() for each in named])


@dataclass(frozen=True)
class Harness:
    """The API and proxy in one origin mode, and their addresses."""

    workspaces: RunningWorkspaces
    mode: str
    main: str
    own: str
    neighbor: str
    api: str
    mallory_session: str

    def port_url(self, port: int) -> str:
        """Return the address of a port of the hostile workspace."""
        return self.own.replace("://", f"://{port}--")


@asynccontextmanager
async def open_workspaces(servers: Servers, directory: Path) -> AsyncIterator[RunningWorkspaces]:
    async with open_deployment(servers, directory) as deployment:
        with deployment.worker_process():
            async with _running_workspaces(deployment) as (hostile, neighbor):
                yield RunningWorkspaces(deployment, hostile, neighbor, secrets.token_hex())


@asynccontextmanager
async def _running_workspaces(deployment: Deployment) -> AsyncIterator[list[WorkspaceId]]:
    """Run two workspaces of Alice; stop them afterwards, because their processes would outlive the tests."""
    deployment.owner = await _add_user(deployment, ALICE)
    await _add_user(deployment, MALLORY)
    workspaces = [await _start(deployment) for _ in range(WORKSPACES)]
    try:
        yield workspaces
    finally:
        for each in workspaces:
            await deployment.move_to(each, DesiredState.STANDBY)


async def _add_user(deployment: Deployment, name: str) -> UUID:
    passwords, now = Passwords(CHEAP), datetime.now(UTC)
    return (await add_user(deployment.database, passwords, name, PASSWORD, role="user", now=now, by=BY)).id


@asynccontextmanager
async def open_harness(workspaces: RunningWorkspaces, name: str) -> AsyncIterator[Harness]:
    """Run an API and a proxy in this mode."""
    mode, port = MODES[name], free_port()
    main = f"http://{mode.host}:{port}"
    environment = {
        **workspaces.deployment.environment,
        **UNLIMITED,
        "CODEHUB_PUBLIC_BASE_URL": main,
        "CODEHUB_PROXY_PORT": str(port),
        "CODEHUB_WORKSPACES_PORTS": _free_range(WORKSPACES),
        **mode.settings,
    }
    async with (
        running_service("api", environment) as api,
        running_service("proxy", {**environment, "CODEHUB_API_PORT": str(api.port)}, port=port),
    ):
        async with _signed_in(api.base_url, main, ALICE) as alice:
            for workspace_id in (workspaces.hostile, workspaces.neighbor):
                # The first visit assigns a port to the workspace.
                await alice.get(f"http://127.0.0.1:{port}/w/{workspace_id}/", headers=_navigation(main))
            listed = (await alice.get("/api/v1/workspaces")).json()["items"]
            urls = {each["id"]: each["url"] for each in listed}
        async with _signed_in(api.base_url, main, MALLORY) as mallory:
            mallory_session = mallory.cookies[PLAIN_COOKIE]
        for workspace_id in (workspaces.hostile, workspaces.neighbor):
            publish(workspaces.deployment.home(workspace_id), pages(workspaces.secret, mallory_session))
        (workspaces.deployment.home(workspaces.hostile) / "ports").write_text(f"{PORT} {OTHER_PORT}")
        yield Harness(
            workspaces,
            name,
            main,
            urls[workspaces.hostile],
            urls[workspaces.neighbor],
            api.base_url.replace("127.0.0.1", mode.host),
            mallory_session,
        )


def _free_range(count: int) -> str:
    """Return a range of ports that nothing listens on."""
    while True:
        first = free_port()
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return f"{first}-{first + count - 1}"


async def _start(deployment: Deployment) -> WorkspaceId:
    workspace_id = await deployment.create(DesiredState.RUNNING)
    await deployment.wake(workspace_id)
    await deployment.wait_for_phase(workspace_id, Phase.RUNNING)
    return workspace_id


@asynccontextmanager
async def _signed_in(api: str, main: str, username: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Origin": main, "Referer": f"{main}/"}
    async with httpx.AsyncClient(base_url=api, headers=headers, timeout=DEADLINE_SECONDS) as client:
        response = await client.post("/api/v1/login", json={"username": username, "password": PASSWORD})
        assert response.status_code == httpx.codes.OK, response.text
        yield client


def _navigation(main: str) -> dict[str, str]:
    """Return the headers of a browser that opens a page of the main origin from the address bar."""
    return {"Host": main.removeprefix("http://"), "Accept": "text/html", "Sec-Fetch-Mode": "navigate"}
