"""The Docker backend of a stage: homes are volumes, instances and jobs are containers of one project."""

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
from codehub.embedded.free_ports import LOOPBACK
from codehub.settings import Settings
from gameday.stage.ide import build_image

JOB_PREFIX = "codehub-job-"
# The engine responds with these for a container that does not exist or does not run.
NOT_RUNNING = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


class DockerBackend:
    """Asks the engine directly."""

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

    @property
    def host(self) -> str:
        return LOOPBACK

    async def home(self, workspace_id: str) -> Path:
        return self._volumes_directory / volume_name(WorkspaceId(workspace_id)) / "_data"

    async def volumes(self) -> list[str]:
        listing = await self._engine.volumes.list(filters=self._own_label)
        found = (parse_volume_name(each["Name"]) for each in listing["Volumes"] or [])
        return [str(each) for each in found if each]

    async def instances(self) -> dict[str, list[str]]:
        found = defaultdict(list)
        for name in await self._containers(exited=True):
            if owner := parse_container_name(name):
                found[str(owner)].append(name)
        return dict(found)

    async def jobs(self) -> list[str]:
        return [name for name in await self._containers(exited=False) if name.startswith(JOB_PREFIX)]

    async def leftovers(self) -> dict[str, list[str]]:
        return {}

    async def versions(self) -> Mapping[str, str]:
        return {"Docker": str((await self._engine.version())["Version"])}

    def unavailable(self) -> list[str]:
        return []

    async def wait_ready(self) -> None:
        """Return at once: a fault of the engine ends when the engine is ready."""

    async def kill_instance(self, name: str) -> None:
        with ignore_statuses(*NOT_RUNNING):
            await self._engine.containers.container(name).kill()

    async def remove_instance(self, name: str) -> None:
        with ignore_statuses(*NOT_RUNNING):
            await self._engine.containers.container(name).delete(force=True)

    async def kill_job(self, name: str) -> None:
        await self.kill_instance(name)

    async def job_pid(self, name: str) -> int | None:
        pid = 0
        with ignore_statuses(*NOT_RUNNING):
            pid = int((await self._engine.containers.container(name).show())["State"]["Pid"])
        return pid or None

    async def remove_everything(self) -> None:
        for name in await self._containers(exited=True):
            await self.remove_instance(name)
        listing = await self._engine.volumes.list(filters=self._own_label)
        for each in listing["Volumes"] or []:
            with ignore_statuses(*NOT_RUNNING):
                await DockerVolume(self._engine, each["Name"]).delete()
        with ignore_statuses(*NOT_RUNNING):
            await (await self._engine.networks.get(self._project)).delete()
        with ignore_statuses(*NOT_RUNNING):
            await self._engine.images.delete(self.image, force=True)

    @property
    def _own_label(self) -> dict[str, list[str]]:
        return {"label": [f"{PROJECT_LABEL}={self._project}"]}

    async def _containers(self, *, exited: bool) -> list[str]:
        found = await self._engine.containers.list(all=exited, filters=json.dumps(self._own_label))
        # The engine puts a slash before a name.
        return [each["Names"][0].removeprefix("/") for each in found]


@asynccontextmanager
async def docker_backend() -> AsyncIterator[DockerBackend]:
    """Open the backend; remove everything of its project at the end, whatever its state."""
    async with open_engine(Settings().docker.url) as engine:
        information = await engine.system.info()
        directory = Path(information["DockerRootDir"]) / "volumes"
        backend = DockerBackend(engine, f"gameday-{uuid4().hex[:12]}", directory)
        try:
            await build_image(engine, backend.image)
            yield backend
        finally:
            await backend.remove_everything()
