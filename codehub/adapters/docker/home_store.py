"""A Docker engine as the store of all homes."""

import socket
import time
from http import HTTPStatus
from uuid import uuid4

from aiodocker import Docker, DockerError
from aiodocker.volumes import DockerVolume

from codehub.adapters.docker.engine import acting, asking, tolerating
from codehub.adapters.docker.options import PROJECT_LABEL, STORE_LABEL, DockerOptions
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

# Asking for it takes 13 ms, the marker less than 1 ms; it changes only with another engine.
ENGINE_ID_SECONDS = 60.0


class DockerHomeStore:
    """The identity is the engine's own id and a random one on a marker volume beside the homes.

    The engine's id alone may survive a wiped data directory, and a machine that was cloned has the same; a
    marker alone could be copied together with other volumes.
    """

    def __init__(self, engine: Docker, options: DockerOptions, url: str) -> None:
        self._engine = engine
        self._options = options
        self._url = url
        self._engine_id = ""
        self._asked_at = 0.0

    @property
    def location(self) -> str:
        project = self._options.project
        return f"the Docker engine {self._url} on {socket.gethostname()} (project {project})"

    async def read_identity(self) -> str | None:
        try:
            with asking():
                marker = await self._read_marker()
                return f"{await self._read_engine_id()}/{marker}" if marker else None
        except Transient:
            # It may come back as another one.
            self._engine_id = ""
            raise

    async def create_identity(self) -> str:
        with acting():
            await self._create_marker()
            # An engine that goes down while it makes a volume leaves it without labels.
            if await self._read_marker() is None:
                with tolerating(HTTPStatus.NOT_FOUND):
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
        """Docker leaves one that exists alone, with the labels that it has."""
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
        if not self._engine_id or now - self._asked_at > ENGINE_ID_SECONDS:
            self._engine_id = str((await self._engine.system.info())["ID"])
            self._asked_at = now
        return self._engine_id
