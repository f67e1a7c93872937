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
from codehub.adapters.docker.engine import translate_change_errors
from codehub.adapters.docker.images import ensure_image
from codehub.adapters.docker.jobs.container import DATA, job_configuration, remove_leftover_job
from codehub.adapters.docker.options import DockerOptions
from codehub.adapters.docker.volumes import create_volume, require_mounted_volume, require_volume
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
class OutputLines:
    """Splits the output of a job into lines: stdout is its protocol, stderr goes to the log."""

    output: JobOutput
    _pending: dict[int, bytes] = field(default_factory=dict)

    def take(self, stream: int, data: bytes) -> None:
        *lines, rest = (self._pending.get(stream, b"") + data).split(b"\n")
        self._pending[stream] = rest[-LINE_LIMIT:]
        for line in lines:
            if stream == STDERR:
                self._log_stderr(line)
            else:
                self.output.feed(line)

    def _log_stderr(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()[:SHOWN_LENGTH]
        self.output.stderr = text
        _log.warning("storage job: %s", text)


class DockerStorageJobs:
    """Runs one job per workspace at a time: container names are unique."""

    def __init__(
        self, engine: Docker, options: DockerOptions, store: ArchiveStore, *, grace_seconds: int = 10
    ) -> None:
        self._engine = engine
        self._options = options
        self._store = store
        self._grace_seconds = grace_seconds

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("archive", workspace_id, key, report)
        return output.stored_archive(key)

    async def restore(
        self, workspace_id: WorkspaceId, key: str, report: Report, expected: ExpectedArchive
    ) -> None:
        with translate_change_errors():
            await create_volume(self._engine, self._options, workspace_id)
        await self._run("restore", workspace_id, key, report, expected)

    async def create_empty(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("create-empty", workspace_id, key, report)
        return output.stored_archive(key)

    async def remove_abandoned(self) -> int:
        """Return 0: a job ends with its caller, and its credentials were only in its memory."""
        return 0

    async def _run(
        self,
        operation: str,
        workspace_id: WorkspaceId,
        key: str,
        report: Report,
        expected: ExpectedArchive = UNRECORDED,
    ) -> JobOutput:
        output = JobOutput(report)
        with translate_change_errors():
            await ensure_image(self._engine, self._options.job_image, report)
            async with self._created(operation, workspace_id) as container:
                status = await self._exchange(container, self._request(key, expected), OutputLines(output))
        output.check(status)
        return output

    def _request(self, key: str, expected: ExpectedArchive) -> bytes:
        return job_request(self._store, key, DATA, expected) + b"\n"

    @contextlib.asynccontextmanager
    async def _created(self, operation: str, workspace_id: WorkspaceId) -> AsyncIterator[DockerContainer]:
        needs_home = operation != "create-empty"
        if needs_home:
            await require_volume(self._engine, self._options, workspace_id)
        container = await self._create(operation, workspace_id)
        try:
            if needs_home:
                await require_mounted_volume(self._engine, self._options, workspace_id, container)
            yield container
        finally:
            await asyncio.shield(self._remove(container))

    async def _create(self, operation: str, workspace_id: WorkspaceId) -> DockerContainer:
        name = job_name(workspace_id)
        configuration = job_configuration(operation, workspace_id, self._store, self._options)
        try:
            return await self._engine.containers.create(configuration, name=name)
        except DockerError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
        if not await remove_leftover_job(self._engine, workspace_id):
            raise Transient(
                ErrorReason.ACTION_FAILED, "Another job is still using this volume; try again later."
            )
        return await self._engine.containers.create(configuration, name=name)

    async def _exchange(self, container: DockerContainer, request: bytes, lines: OutputLines) -> int:
        """Run the job and return its exit status. Attach before the start, so that no output is missed."""
        async with container.attach(stdin=True, stdout=True, stderr=True) as stream:
            await container.start()
            await stream.write_in(request)
            await self._read_output(stream, lines)
        # The job has closed its output and is about to exit; the client would wait forever for a hung engine.
        async with asyncio.timeout(self._options.timeouts.response):
            response = await container.wait()
        return int(response["StatusCode"])

    async def _read_output(self, stream: Stream, lines: OutputLines) -> None:
        while message := await stream.read_out():
            lines.take(message.stream, message.data)

    async def _remove(self, container: DockerContainer) -> None:
        """Stop and remove the container. It still runs if the call was cancelled or lost its connection."""
        await stop_container(container, self._grace_seconds, self._options.timeouts.response)
        await remove_container(container)
