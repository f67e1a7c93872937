"""The Docker backend of a stage: homes are volumes, IDEs and jobs are containers, all of one project."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from uuid import uuid4

from aiodocker import Docker
from aiodocker.volumes import DockerVolume

from codehub.adapters.docker.engine import ignore_statuses, open_engine
from codehub.adapters.docker.options import PROJECT_LABEL
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import parse_container_name, parse_volume_name, volume_name
from codehub.settings import Settings
from gameday.stage.ide import build_image

JOB_PREFIX = "codehub-job-"
# What the engine answers for a container that is gone, or that does not run.
GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


class DockerGround:
    """Asks the engine, which is the truth."""

    def __init__(self, engine: Docker, project: str, volumes_directory: Path) -> None:
        self._engine = engine
        self._project = project
        self._volumes_directory = volumes_directory

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local-docker",
            "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": self.image,
            "CODEHUB_DOCKER_PROJECT": self._project,
            "CODEHUB_DOCKER_NETWORK": self._project,
            "CODEHUB_DOCKER_STOP_SECONDS": "5",
        }

    @property
    def image(self) -> str:
        return f"codehub-gameday-ide:{self._project}"

    def home(self, workspace_id: str) -> Path:
        return self._volumes_directory / volume_name(WorkspaceId(workspace_id)) / "_data"

    async def volumes(self) -> list[str]:
        answer = await self._engine.volumes.list(filters=self._mine)
        found = (parse_volume_name(each["Name"]) for each in answer["Volumes"] or [])
        return [str(each) for each in found if each]

    async def instances(self) -> dict[str, list[str]]:
        found = defaultdict(list)
        for name in await self._containers(exited=True):
            if owner := parse_container_name(name):
                found[str(owner)].append(name)
        return dict(found)

    async def jobs(self) -> list[str]:
        return [name for name in await self._containers(exited=False) if name.startswith(JOB_PREFIX)]

    async def kill_instance(self, name: str) -> None:
        with ignore_statuses(*GONE):
            await self._engine.containers.container(name).kill()

    async def remove_instance(self, name: str) -> None:
        with ignore_statuses(*GONE):
            await self._engine.containers.container(name).delete(force=True)

    async def kill_job(self, name: str) -> None:
        await self.kill_instance(name)

    async def pid_of_job(self, name: str) -> int | None:
        pid = 0
        with ignore_statuses(*GONE):
            pid = int((await self._engine.containers.container(name).show())["State"]["Pid"])
        return pid or None

    async def remove_everything(self) -> None:
        for name in await self._containers(exited=True):
            await self.remove_instance(name)
        answer = await self._engine.volumes.list(filters=self._mine)
        for each in answer["Volumes"] or []:
            with ignore_statuses(*GONE):
                await DockerVolume(self._engine, each["Name"]).delete()
        with ignore_statuses(*GONE):
            await (await self._engine.networks.get(self._project)).delete()
        with ignore_statuses(*GONE):
            await self._engine.images.delete(self.image, force=True)

    @property
    def _mine(self) -> dict[str, list[str]]:
        return {"label": [f"{PROJECT_LABEL}={self._project}"]}

    async def _containers(self, *, exited: bool) -> list[str]:
        found = await self._engine.containers.list(all=exited, filters=json.dumps(self._mine))
        # The engine writes a slash before a name.
        return [each["Names"][0].removeprefix("/") for each in found]


@asynccontextmanager
async def docker_ground() -> AsyncIterator[DockerGround]:
    """Everything of its project is removed at the end, whatever state it is in."""
    async with open_engine(Settings().docker.url) as engine:
        information = await engine.system.info()
        directory = Path(information["DockerRootDir"]) / "volumes"
        ground = DockerGround(engine, f"gameday-{uuid4().hex[:12]}", directory)
        try:
            await build_image(engine, ground.image)
            yield ground
        finally:
            await ground.remove_everything()
