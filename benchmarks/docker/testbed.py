"""What all contestants share: the engine, images, network and limits; all is removed at the end."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from aiodocker import Docker
from aiodocker.volumes import DockerVolume

from benchmarks.instances.contestants import START_SECONDS
from codehub.adapters.docker.engine import ignore_statuses, open_engine
from codehub.adapters.docker.images import Image, ensure_image
from codehub.adapters.docker.network import ensure_network
from codehub.adapters.docker.options import PROJECT_LABEL, DockerOptions
from codehub.providers import docker_options_of
from codehub.settings import load_settings
from testkit.docker_engine import URL, WORKSPACE_IMAGE, build
from testkit.fakes import IMAGE as TINY_IMAGE

IMAGES = {"code-server": WORKSPACE_IMAGE, "tiny IDE": TINY_IMAGE}
MARKED = {"label": [PROJECT_LABEL]}


@dataclass(frozen=True)
class Testbed:
    """One Docker engine; `name` labels everything that this run creates, and names its network."""

    engine: Docker
    name: str
    sockets: Path
    network_id: str
    images: Mapping[str, Image]

    def project(self, contestant: str) -> str:
        return f"{self.name}-{contestant}"

    def environment(self, contestant: str) -> dict[str, str]:
        """Return the settings of a CodeHub on this engine."""
        return {
            "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local-docker",
            "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": WORKSPACE_IMAGE,
            "CODEHUB_DOCKER_URL": URL,
            "CODEHUB_DOCKER_PROJECT": self.project(contestant),
            # JupyterHub's containers have a network too.
            "CODEHUB_DOCKER_EGRESS": "direct",
            "CODEHUB_DOCKER_NETWORK": self.name,
            "CODEHUB_DOCKER_SOCKETS": str(self.sockets / contestant),
            "CODEHUB_DOCKER_START_SECONDS": str(START_SECONDS),
        }

    def options(self, contestant: str) -> DockerOptions:
        """Derive the options from settings, so that all containers are made like CodeHub's."""
        return docker_options_of(load_settings(self.environment(contestant)))


@asynccontextmanager
async def open_testbed() -> AsyncIterator[Testbed]:
    build(TINY_IMAGE, "tiny-ide.Dockerfile")
    name = f"codehub-benchmark-{uuid4().hex[:8]}"
    with TemporaryDirectory(prefix="codehub-sockets-") as sockets:
        async with open_engine(URL) as engine:
            images = {
                reference: await ensure_image(engine, reference, lambda _: None)
                for reference in IMAGES.values()
            }
            try:
                yield Testbed(engine, name, Path(sockets), await ensure_network(engine, name), images)
            finally:
                await _remove_everything(engine, name)


async def _remove_everything(engine: Docker, name: str) -> None:
    for container in await engine.containers.list(all=True, filters=json.dumps(MARKED)):
        if container["Labels"][PROJECT_LABEL].startswith(name):
            with ignore_statuses(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                await container.delete(force=True)
    for volume in (await engine.volumes.list(filters=MARKED))["Volumes"] or []:
        if volume["Labels"][PROJECT_LABEL].startswith(name):
            await DockerVolume(engine, volume["Name"]).delete()
    await (await engine.networks.get(name)).delete()
