"""A real Docker engine for tests: what they need of it, and what they do behind the providers' backs."""

import functools
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from aiodocker import Docker

from codehub.adapters.docker.engine import open_engine
from codehub.adapters.docker.options import PROJECT_LABEL, DockerOptions, Timeouts
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, volume_name
from testkit.needs import do_without, do_without_engine, need_program, need_root

URL = "unix:///var/run/docker.sock"
NOBODY_URL = "unix:///nonexistent/docker.sock"
NETWORK = "codehub-tests"
JOB_IMAGE = "codehub-storage-job:latest"
WORKSPACE_IMAGE = "codehub-workspace:latest"
STALLED_JOB_IMAGE = "codehub-test-stalled-job"
CONTEXT = Path(__file__).parent
# Enough for a loaded machine: only what is broken uses it up.
PATIENCE = Timeouts(start=120, stop=5, health=10)


def docker(*arguments: str) -> str:
    """Run the command line client; what it printed."""
    command = ("docker", *arguments)
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"docker {' '.join(arguments)}: {run.stderr}"
    return run.stdout.strip()


def need_docker(*images: str) -> None:
    """Skip where there is no engine with these images; where CI runs, fail."""
    command = (need_program("docker"), "info")
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        do_without_engine()
    # Nobody else can look into volumes.
    need_root()
    for image in images:
        if not docker("images", "--quiet", image):
            do_without(image, "make images")


@functools.cache
def build(name: str, dockerfile: str, *build_args: str) -> None:
    """Build an image that only tests use; it takes seconds, and nothing from a network."""
    arguments = [word for each in build_args for word in ("--build-arg", each)]
    path = CONTEXT / "docker_images" / dockerfile
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    command = ("docker", "build", "--quiet", "--tag", name, *arguments, "--file", str(path), str(CONTEXT))
    run = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr


@functools.cache
def _root_directory() -> Path:
    return Path(docker("info", "--format", "{{.DockerRootDir}}"))


def volume_path(workspace_id: WorkspaceId) -> Path:
    """Where the engine keeps a home, whether or not it exists."""
    return _root_directory() / "volumes" / volume_name(workspace_id) / "_data"


# Of this run; others may use the same engine meanwhile.
_projects: list[str] = []


def new_project() -> str:
    """A mark for what one test makes."""
    _projects.append(f"test-{uuid4()}")
    return _projects[-1]


def left_behind() -> list[str]:
    """What tests of this run have made and not removed; the network goes once nobody uses it."""
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
    """The engine as one test sees it: what it makes is marked as this test's, and removed with it."""

    client: Docker
    options: DockerOptions = field(
        default_factory=lambda: DockerOptions(
            project=new_project(), network=NETWORK, job_image=JOB_IMAGE, timeouts=PATIENCE
        )
    )

    def inspect(self, workspace_id: WorkspaceId) -> dict[str, Any]:
        [found] = json.loads(docker("inspect", container_name(workspace_id)))
        return dict(found)

    def home(self, workspace_id: WorkspaceId) -> Path:
        return volume_path(workspace_id)

    def containers(self, *flags: str) -> list[str]:
        """Names of what is there of this test."""
        mine = f"label={PROJECT_LABEL}={self.options.project}"
        return docker("ps", *flags, "--filter", mine, "--format", "{{.Names}}").split()

    def volumes(self) -> list[str]:
        mine = f"label={PROJECT_LABEL}={self.options.project}"
        return docker("volume", "ls", "--quiet", "--filter", mine).split()

    def tidy(self) -> None:
        if containers := self.containers("--all"):
            docker("rm", "--force", *containers)
        if volumes := self.volumes():
            docker("volume", "rm", *volumes)

    def with_options(self, **changes: Any) -> DockerOptions:  # noqa: ANN401 (whatever options there are)
        return replace(self.options, **changes)


@asynccontextmanager
async def opened_engine() -> AsyncIterator[Engine]:
    async with open_engine(URL) as client:
        engine = Engine(client)
        try:
            yield engine
        finally:
            engine.tidy()
