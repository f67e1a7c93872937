"""What every contestant is given: one engine, the same images, network and limits; all goes at the end."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol
from uuid import uuid4

from aiodocker import Docker
from aiodocker.volumes import DockerVolume

from codehub.adapters.docker.engine import ignore_statuses, open_engine
from codehub.adapters.docker.images import Image, ensure_image
from codehub.adapters.docker.network import ensure_network
from codehub.adapters.docker.options import PROJECT_LABEL, DockerOptions
from codehub.domain.states import Operation
from codehub.providers import docker_options_of
from codehub.settings import load_settings
from testkit.docker_engine import URL, WORKSPACE_IMAGE, build
from testkit.fakes import IMAGE as TINY_IMAGE

IMAGES = {"code-server": WORKSPACE_IMAGE, "tiny IDE": TINY_IMAGE}
START_SECONDS = 120
MARKED = {"label": [PROJECT_LABEL]}


@dataclass(frozen=True)
class Ground:
    """`name` marks everything that this run makes, and is its network's too."""

    engine: Docker
    name: str
    network_id: str
    images: Mapping[str, Image]

    def project(self, who: str) -> str:
        return f"{self.name}-{who}"

    def environment(self, who: str) -> dict[str, str]:
        """The settings of a CodeHub that plays here."""
        return {
            "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local-docker",
            "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": WORKSPACE_IMAGE,
            "CODEHUB_DOCKER_URL": URL,
            "CODEHUB_DOCKER_PROJECT": self.project(who),
            "CODEHUB_DOCKER_NETWORK": self.name,
            "CODEHUB_DOCKER_START_SECONDS": str(START_SECONDS),
        }

    def options(self, who: str) -> DockerOptions:
        """By way of the settings, so that nobody's containers are made otherwise than CodeHub's."""
        return docker_options_of(load_settings(self.environment(who)))


class Contestant(Protocol):
    """Somebody who starts and stops workspaces; each has a number, and a home for each image."""

    async def prepare(self, reference: str, number: int) -> None:
        """Make its home, which is there before it is started for the first time."""

    async def start(self, reference: str, number: int) -> None:
        """Return once it takes traffic; raise Failed if that does not come."""

    async def stop(self, reference: str, number: int) -> None:
        """Return once it is gone; raise Failed if it stays."""

    async def look_back(self, reference: str, number: int, operation: Operation) -> Mapping[str, float]:
        """Where the seconds of the operation that has just ended went, as far as that is known."""


class Failed(Exception):
    """A contestant could not do what it was asked for; the message says why."""


@asynccontextmanager
async def open_ground() -> AsyncIterator[Ground]:
    build(TINY_IMAGE, "tiny-ide.Dockerfile")
    name = f"codehub-benchmark-{uuid4().hex[:8]}"
    async with open_engine(URL) as engine:
        images = {
            reference: await ensure_image(engine, reference, lambda _: None) for reference in IMAGES.values()
        }
        try:
            yield Ground(engine, name, await ensure_network(engine, name), images)
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
