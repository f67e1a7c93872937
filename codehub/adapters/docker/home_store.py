"""A Docker engine as the home store."""

import socket
import time
from http import HTTPStatus
from uuid import uuid4

from aiodocker import Docker, DockerError
from aiodocker.volumes import DockerVolume

from codehub.adapters.docker.engine import ignore_statuses, translate_change_errors, translate_read_errors
from codehub.adapters.docker.options import PROJECT_LABEL, STORE_LABEL, DockerOptions
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

# Reading the engine's id takes 13 ms, the marker less than 1 ms. The id changes only with another engine.
ENGINE_ID_SECONDS = 60.0


class DockerHomeStore:
    """The identity is the engine's own id plus a random id in the label of a marker volume.

    Neither is enough alone: the engine's id can survive a wiped data directory and is the same on a cloned
    machine, and a marker can be copied with other volumes.
    """

    def __init__(self, engine: Docker, options: DockerOptions, url: str) -> None:
        self._engine = engine
        self._options = options
        self._url = url
        self._engine_id = ""
        self._read_at = 0.0

    @property
    def location(self) -> str:
        project = self._options.project
        return f"the Docker engine {self._url} on {socket.gethostname()} (project {project})"

    async def read_identity(self) -> str | None:
        try:
            with translate_read_errors():
                marker = await self._read_marker()
                return f"{await self._read_engine_id()}/{marker}" if marker else None
        except Transient:
            # Another engine may respond next time.
            self._engine_id = ""
            raise

    async def create_identity(self) -> str:
        with translate_change_errors():
            await self._create_marker()
            # An engine that goes down while it creates a volume leaves one without labels.
            if await self._read_marker() is None:
                with ignore_statuses(HTTPStatus.NOT_FOUND):
                    await DockerVolume(self._engine, self._options.marker_name).delete()
                await self._create_marker()
        identity = await self.read_identity()
        if identity is None:
            name = self._options.marker_name
            raise Transient(
                ErrorReason.ACTION_FAILED, f"The volume {name} has lost its label; remove it, then try again."
            )
        return identity

    async def _create_marker(self) -> None:
        """Create the marker volume. Docker keeps an existing one and its labels."""
        labels = {PROJECT_LABEL: self._options.project, STORE_LABEL: str(uuid4())}
        await self._engine.volumes.create({"Name": self._options.marker_name, "Labels": labels})

    async def _read_marker(self) -> str | None:
        try:
            marker = await DockerVolume(self._engine, self._options.marker_name).show()
        except DockerError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return (marker["Labels"] or {}).get(STORE_LABEL)

    async def _read_engine_id(self) -> str:
        now = time.monotonic()
        if not self._engine_id or now - self._read_at > ENGINE_ID_SECONDS:
            self._engine_id = str((await self._engine.system.info())["ID"])
            self._read_at = now
        return self._engine_id
