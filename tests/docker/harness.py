"""A small CodeHub whose workspaces are containers, on real servers and a real engine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name
from testkit.deployment import Deployment, Servers, open_deployment
from testkit.docker_engine import NETWORK, Engine, build, docker, opened_engine
from testkit.fakes import IMAGE


@asynccontextmanager
async def open_docker_deployment(
    servers: Servers, directory: Path, **extra: str
) -> AsyncIterator[Deployment]:
    """Start a deployment, and remove everything that it created."""
    build(IMAGE, "tiny-ide.Dockerfile")
    async with opened_engine() as engine:
        backend = {
            "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local-docker",
            "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": IMAGE,
            "CODEHUB_DOCKER_PROJECT": engine.options.project,
            "CODEHUB_DOCKER_NETWORK": NETWORK,
            "CODEHUB_DOCKER_START_SECONDS": "120",
            "CODEHUB_DOCKER_STOP_SECONDS": "5",
        }
        async with open_deployment(servers, directory, **backend, **extra) as deployment:
            yield deployment
            check_no_job_is_left(engine)


def check_no_job_is_left(engine: Engine) -> None:
    assert not [name for name in engine.containers("--all") if name.startswith("codehub-job-")]


def container_id(workspace_id: WorkspaceId) -> str:
    return docker("inspect", "--format", "{{.Id}}", container_name(workspace_id))
