"""Use a real Docker engine in tests, with the command line client where a provider must not notice."""

import functools
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from aiodocker import Docker

from codehub.adapters.docker.engine import open_engine
from codehub.adapters.docker.options import PROJECT_LABEL, DockerOptions, Timeouts
from codehub.adapters.docker.sockets import SocketDirectory
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, volume_name
from testkit.needs import do_without, do_without_engine, need_program, need_root

URL = "unix:///var/run/docker.sock"
UNREACHABLE_URL = "unix:///nonexistent/docker.sock"
NETWORK = "codehub-tests"
JOB_IMAGE = "codehub-storage-job:latest"
WORKSPACE_IMAGE = "codehub-workspace:latest"
STALLED_JOB_IMAGE = "codehub-test-stalled-job"
REPOSITORY = Path(__file__).parents[1]
# For what starts no instances.
NO_SOCKETS = SocketDirectory(Path("/nonexistent/sockets"))
# Long enough for a loaded machine; only failures take this long.
PATIENCE = Timeouts(start=120, stop=5, health=10)


def docker(*arguments: str) -> str:
    """Run the command line client and return its output."""
    command = ("docker", *arguments)
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"docker {' '.join(arguments)}: {run.stderr}"
    return run.stdout.strip()


def need_docker(*images: str) -> None:
    """Skip the test without an engine that has these images; fail in CI."""
    command = (need_program("docker"), "info")
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        do_without_engine()
    # Only root can read volumes.
    need_root()
    for image in images:
        if not docker("images", "--quiet", image):
            do_without(image, "make images")


@functools.cache
def build(name: str, dockerfile: str, *build_args: str) -> None:
    """Build an image that only tests use, within seconds and without a network."""
    arguments = [word for each in build_args for word in ("--build-arg", each)]
    path = REPOSITORY / "testkit" / "docker_images" / dockerfile
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    with TemporaryDirectory() as context:
        _fill_context(Path(context))
        command = ("docker", "build", "--quiet", "--tag", name, *arguments, "--file", str(path), context)
        run = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr


def _fill_context(context: Path) -> None:
    shutil.copy(REPOSITORY / "testkit" / "tiny_ide.py", context)
    shutil.copy(REPOSITORY / "images" / "workspace" / "run-agent", context)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "workspace_agent", context / "workspace_agent", ignore=ignored)
    (context / "testkit").mkdir()
    for name in ("__init__.py", "crash_points.py"):
        shutil.copy(REPOSITORY / "testkit" / name, context / "testkit")


@functools.cache
def _root_directory() -> Path:
    return Path(docker("info", "--format", "{{.DockerRootDir}}"))


def volume_path(workspace_id: WorkspaceId) -> Path:
    """Return the directory of a home on the engine's disk, whether or not it exists."""
    return _root_directory() / "volumes" / volume_name(workspace_id) / "_data"


# Only of this run: other runs may use the same engine.
_projects: list[str] = []


def new_project() -> str:
    """Return a project label for the containers and volumes of one test."""
    _projects.append(f"test-{uuid4()}")
    return _projects[-1]


def left_behind() -> list[str]:
    """Return containers and volumes that this run has not removed; remove the network if it is unused."""
    left = []
    for project in _projects:
        mine = ("--quiet", "--filter", f"label={PROJECT_LABEL}={project}")
        left += docker("ps", "--all", *mine).split() + docker("volume", "ls", *mine).split()
    if docker("network", "ls", "--quiet", "--filter", f"name=^{NETWORK}$"):
        users = docker("network", "inspect", "--format", "{{len .Containers}}", NETWORK)
        if users == "0":
            docker("network", "rm", NETWORK)
    return left


@dataclass
class Engine:
    """The engine for one test: what the test creates carries its label and is removed with it."""

    client: Docker
    options: DockerOptions

    def inspect(self, workspace_id: WorkspaceId) -> dict[str, Any]:
        [found] = json.loads(docker("inspect", container_name(workspace_id)))
        return dict(found)

    def home(self, workspace_id: WorkspaceId) -> Path:
        return volume_path(workspace_id)

    def containers(self, *flags: str) -> list[str]:
        """Return the names of this test's containers."""
        mine = f"label={PROJECT_LABEL}={self.options.project}"
        return docker("ps", *flags, "--filter", mine, "--format", "{{.Names}}").split()

    def volumes(self) -> list[str]:
        mine = f"label={PROJECT_LABEL}={self.options.project}"
        return docker("volume", "ls", "--quiet", "--filter", mine).split()

    def clean_up(self) -> None:
        if containers := self.containers("--all"):
            docker("rm", "--force", *containers)
        if volumes := self.volumes():
            docker("volume", "rm", *volumes)

    def with_options(self, **changes: Any) -> DockerOptions:  # noqa: ANN401 (any option)
        return replace(self.options, **changes)


@asynccontextmanager
async def opened_engine() -> AsyncIterator[Engine]:
    with TemporaryDirectory(prefix="codehub-sockets-") as directory:
        async with open_engine(URL) as client:
            engine = Engine(client, _new_options(Path(directory)))
            try:
                yield engine
            finally:
                engine.clean_up()


def _new_options(sockets: Path) -> DockerOptions:
    return DockerOptions(
        sockets=SocketDirectory(sockets),
        network=NETWORK,
        project=new_project(),
        base_path="/w/{id}/",
        job_image=JOB_IMAGE,
        timeouts=PATIENCE,
    )
