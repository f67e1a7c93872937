"""The control plane as containers of its image, on real servers: a workspace goes through its lifecycle."""

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from codehub.adapters.docker.options import PROJECT_LABEL
from codehub.domain.conditions import WorkspaceId
from codehub.embedded.free_ports import choose_ports
from codehub.embedded.servers.temporal import certificates
from codehub.embedded.stack import EmbeddedStack
from codehub.settings import Settings
from testkit.docker_engine import URL, build, docker, need_docker, opened_engine, volume_path
from testkit.fakes import IMAGE
from testkit.waiting import DEADLINE_SECONDS, until
from tests.e2e.harness import WORKSPACES, Person, sign_in
from tests.images.conftest import CONTROL_PLANE_IMAGE
from tests.images.restrictions import RESTRICTED

SOCKET = Path(URL.removeprefix("unix://"))
CERTIFICATES = "/certificates"
# The image's user.
USER = 10001
# In seconds, the same stop grace as in docker-compose.yml.
GRACE = {"api": 20, "worker": 30, "proxy": 30}


@dataclass(frozen=True)
class ControlPlane:
    """The containers of the control plane, configured by their environment."""

    project: str
    settings: Path
    certificates: Path
    shared: Path
    api_url: str
    url: str

    def run(self, *command: str) -> str:
        """Wait until it ends and return its output."""
        return docker("run", "--rm", *self._options(), CONTROL_PLANE_IMAGE, *command)

    async def start(self, service: str) -> None:
        """Return when it is ready."""
        name = self.name(service)
        docker(
            *("run", "--detach", "--name", name, *self._options()),
            *(CONTROL_PLANE_IMAGE, "python", "-m", service),
        )

        async def is_ready() -> bool:
            assert self.read_state(service) == "running", docker("logs", name)
            return docker("exec", name, "sh", "-c", "test -f /tmp/ready || echo no") == ""

        await until(is_ready, f"the {service} is ready")

    def stop(self, service: str) -> int:
        """Return its exit code. Kill it after its grace."""
        docker("stop", "--time", str(GRACE[service]), self.name(service))
        return int(docker("inspect", "--format", "{{.State.ExitCode}}", self.name(service)))

    def read_state(self, service: str) -> str:
        return docker("inspect", "--format", "{{.State.Status}}", self.name(service))

    def name(self, service: str) -> str:
        return f"{self.project}-{service}"

    def _options(self) -> tuple[str, ...]:
        return (
            *("--network", "host", "--label", f"{PROJECT_LABEL}={self.project}", *RESTRICTED),
            # Not as root: its group has access to the engine.
            *("--volume", f"{SOCKET}:{SOCKET}", "--group-add", str(SOCKET.stat().st_gid)),
            *("--env-file", str(self.settings)),
            *("--volume", f"{self.certificates}:{CERTIFICATES}:ro"),
            # The engine mounts directories below it into workspaces, so it is at the same path everywhere.
            *("--volume", f"{self.shared}:{self.shared}"),
        )


@asynccontextmanager
async def control_plane(directory: Path) -> AsyncIterator[ControlPlane]:
    """Prepare a control plane that does not run yet, and remove everything that it created."""
    need_docker(CONTROL_PLANE_IMAGE)
    build(IMAGE, "tiny-ide.Dockerfile")
    ports = choose_ports(["api", "proxy"], {})
    async with EmbeddedStack(directory / "stack", Settings()) as stack, opened_engine() as engine:
        project, settings = engine.options.project, directory / "settings"
        copied = copy_certificates(stack, directory / "certificates")
        shared = directory / "shared"
        shared.mkdir()
        os.chown(shared, USER, USER)
        write_settings(settings, {**in_container(stack), **settings_of(project, ports, shared)})
        urls = (f"http://127.0.0.1:{ports[name]}" for name in ("api", "proxy"))
        started = ControlPlane(project, settings, copied, shared, *urls)
        try:
            yield started
        finally:
            # Stop it before removing its objects, which it would recreate.
            if services := {started.name(each) for each in GRACE}.intersection(engine.containers("--all")):
                docker("rm", "--force", *services)


def copy_certificates(stack: EmbeddedStack, target: Path) -> Path:
    """Copy Temporal's client certificate for the image's user, who cannot read the data directory."""
    shutil.copytree(certificates(stack.data).directory, target)
    target.chmod(0o755)
    for path in target.iterdir():
        path.chmod(0o644)
    return target


def in_container(stack: EmbeddedStack) -> dict[str, str]:
    """Return the stack's settings with the path of the certificates in the container."""
    path = str(certificates(stack.data).directory)
    return {name: value.replace(path, CERTIFICATES) for name, value in stack.environment.items()}


def settings_of(project: str, ports: Mapping[str, int], shared: Path) -> dict[str, str]:
    return {
        "HOME": "/tmp",  # noqa: S108 (the container's own)
        "CODEHUB_DATA_DIR": "/tmp/codehub",  # noqa: S108
        "CODEHUB_LOG_FORMAT": "json",
        "CODEHUB_API_PORT": str(ports["api"]),
        "CODEHUB_PROXY_PORT": str(ports["proxy"]),
        "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local-docker",
        "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": IMAGE,
        "CODEHUB_DOCKER_PROJECT": project,
        "CODEHUB_DOCKER_SOCKETS": str(shared / "sockets"),
        "CODEHUB_EGRESS_SOCKET": str(shared / "egress" / "gateway.sock"),
        "CODEHUB_DOCKER_START_SECONDS": "120",
    }


def write_settings(file: Path, values: Mapping[str, str]) -> None:
    """They include passwords."""
    file.touch(mode=0o600)
    file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))


@pytest.mark.timeout(600)
async def test_a_workspace_goes_through_every_state(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as running:
        assert "empty → " in running.run("codehub", "migrate")
        for service in GRACE:
            await running.start(service)
        await expect_healthy(running)
        password = running.run("codehub", "user", "add", "ada", "--generate")
        person = Person(running.url, await sign_in(running.url, "ada", password))
        async with person.client:
            await live(person)
        assert {service: running.stop(service) for service in GRACE} == dict.fromkeys(GRACE, 0)


async def expect_healthy(running: ControlPlane) -> None:
    async with httpx.AsyncClient(timeout=DEADLINE_SECONDS) as client:
        for url in (running.url + "/healthz", running.api_url + "/healthz", running.api_url + "/readyz"):
            assert (await client.get(url)).status_code == HTTPStatus.OK, url


async def live(person: Person) -> None:
    workspace_id = await person.create(image_ref=IMAGE)
    home = volume_path(workspace_id)
    await person.move_to(workspace_id, "RUNNING")
    (home / "notes.txt").write_text("every file comes back")
    assert await list_home(person, workspace_id) == ["notes.txt"]
    await person.move_to(workspace_id, "STANDBY")
    await person.move_to(workspace_id, "ARCHIVED")
    assert not home.exists()
    await person.move_to(workspace_id, "RUNNING")
    assert await list_home(person, workspace_id) == ["notes.txt"]
    assert (home / "notes.txt").read_text() == "every file comes back"
    await delete(person, workspace_id)
    assert not home.exists()


async def list_home(person: Person, workspace_id: WorkspaceId) -> list[str]:
    """Return what the tiny IDE sees, through the proxy."""
    host = {"Host": f"{workspace_id}.localhost:{urlsplit(person.url).port}"}
    answer = await person.client.get("/list/home/coder", headers=host)
    assert answer.status_code == HTTPStatus.OK, answer.text
    names: list[str] = answer.json()
    return names


async def delete(person: Person, workspace_id: WorkspaceId) -> None:
    assert (await person.client.delete(f"{WORKSPACES}/{workspace_id}")).status_code == HTTPStatus.ACCEPTED

    async def is_gone() -> bool:
        answer = await person.client.get(f"{WORKSPACES}/{workspace_id}")
        return answer.status_code == HTTPStatus.NOT_FOUND

    await until(is_gone, "the workspace is deleted")
