"""Storage jobs as throwaway containers that read their request from stdin and end with their caller."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from http import HTTPStatus

from aiodocker import Docker, DockerError
from aiodocker.containers import DockerContainer
from aiodocker.stream import Stream

from codehub.adapters.docker.containers import remove_container, stop_container
from codehub.adapters.docker.engine import acting
from codehub.adapters.docker.images import ensure_image
from codehub.adapters.docker.jobs.container import DATA, clear_leftover, job_configuration
from codehub.adapters.docker.options import DockerOptions
from codehub.adapters.docker.volumes import is_volume, make_volume, remove_bare_volume
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import job_name
from codehub.domain.states import ErrorReason
from codehub.job_protocol import JobOutput, job_request
from codehub.ports import UNRECORDED, ArchiveStore, ExpectedArchive, Report, StoredArchive

STDERR = 2
LINE_LIMIT = 1_000_000
SHOWN_LENGTH = 1000
_log = logging.getLogger(__name__)


@dataclass
class JobLines:
    """What it says on stdout is for us, what it says on stderr for the log."""

    output: JobOutput
    _pending: dict[int, bytes] = field(default_factory=dict)

    def take(self, stream: int, data: bytes) -> None:
        *lines, rest = (self._pending.get(stream, b"") + data).split(b"\n")
        self._pending[stream] = rest[-LINE_LIMIT:]
        for line in lines:
            if stream == STDERR:
                self._complain(line)
            else:
                self.output.take(line)

    def _complain(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()[:SHOWN_LENGTH]
        self.output.complaint = text
        _log.warning("storage job: %s", text)


class DockerStorageJobs:
    """One job per workspace at a time: the engine gives its name to one container only."""

    def __init__(
        self, engine: Docker, options: DockerOptions, store: ArchiveStore, *, grace_seconds: int = 10
    ) -> None:
        self._engine = engine
        self._options = options
        self._store = store
        self._grace_seconds = grace_seconds

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("archive", workspace_id, key, report)
        return output.stored_as(key)

    async def restore(
        self, workspace_id: WorkspaceId, key: str, report: Report, expected: ExpectedArchive
    ) -> None:
        with acting():
            await make_volume(self._engine, self._options, workspace_id)
        await self._run("restore", workspace_id, key, report, expected)

    async def create_empty(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("create-empty", workspace_id, key, report)
        return output.stored_as(key)

    async def _run(
        self,
        operation: str,
        workspace_id: WorkspaceId,
        key: str,
        report: Report,
        expected: ExpectedArchive = UNRECORDED,
    ) -> JobOutput:
        output = JobOutput(report)
        with acting():
            await ensure_image(self._engine, self._options.job_image, report)
            async with self._created(operation, workspace_id) as container:
                status = await self._talk(container, self._request(key, expected), JobLines(output))
        output.check(status)
        return output

    def _request(self, key: str, expected: ExpectedArchive) -> bytes:
        return job_request(self._store, key, DATA, expected) + b"\n"

    @contextlib.asynccontextmanager
    async def _created(self, operation: str, workspace_id: WorkspaceId) -> AsyncIterator[DockerContainer]:
        needs_home = operation != "create-empty"
        if needs_home and not await is_volume(self._engine, self._options, workspace_id):
            raise _homeless()
        container = await self._create(operation, workspace_id)
        try:
            if needs_home:
                await self._check_home(container, workspace_id)
            yield container
        finally:
            await asyncio.shield(self._end(container))

    async def _create(self, operation: str, workspace_id: WorkspaceId) -> DockerContainer:
        name = job_name(workspace_id)
        configuration = job_configuration(operation, workspace_id, self._store, self._options)
        try:
            return await self._engine.containers.create(configuration, name=name)
        except DockerError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
        if not await clear_leftover(self._engine, workspace_id):
            raise Transient(
                ErrorReason.ACTION_FAILED, "Another job still works on this volume; try again later."
            )
        return await self._engine.containers.create(configuration, name=name)

    async def _check_home(self, container: DockerContainer, workspace_id: WorkspaceId) -> None:
        """A home that vanished since it was looked for has been replaced by Docker with an empty volume."""
        if not await is_volume(self._engine, self._options, workspace_id):
            await remove_container(container)
            await remove_bare_volume(self._engine, workspace_id)
            raise _homeless()

    async def _talk(self, container: DockerContainer, request: bytes, lines: JobLines) -> int:
        """Attached before it starts, so that nothing it says is missed."""
        async with container.attach(stdin=True, stdout=True, stderr=True) as stream:
            await container.start()
            await stream.write_in(request)
            await self._listen(stream, lines)
        # It has closed its output, so it ends now; the client would wait forever for an engine that hangs.
        async with asyncio.timeout(self._options.patience.answer):
            answer = await container.wait()
        return int(answer["StatusCode"])

    async def _listen(self, stream: Stream, lines: JobLines) -> None:
        while message := await stream.read_out():
            lines.take(message.stream, message.data)

    async def _end(self, container: DockerContainer) -> None:
        """It has ended, unless this call was cancelled or lost its connection."""
        await stop_container(container, self._grace_seconds, self._options.patience.answer)
        await remove_container(container)


def _homeless() -> Transient:
    return Transient(ErrorReason.ACTION_FAILED, "The job cannot be run: the volume does not exist.")
