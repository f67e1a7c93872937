"""Storage jobs as subprocesses on local volumes."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from codehub.adapters.local.locks import exclusive
from codehub.adapters.local.root import LocalRoot, translate_errors
from codehub.adapters.local.volumes import make_volume
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import parse_workspace_id
from codehub.domain.states import ErrorReason
from codehub.job_protocol import JobOutput, job_request
from codehub.ports import UNRECORDED, ArchiveStore, ExpectedArchive, Report, StoredArchive


class LocalStorageJobs:
    """One job per workspace at a time: its process itself holds the lock, so not even our death frees it."""

    def __init__(self, root: Path, store: ArchiveStore, *, grace_seconds: float = 10.0) -> None:
        self._root = LocalRoot.at(root)
        self._store = store
        self._grace_seconds = grace_seconds

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("archive", workspace_id, key, report)
        return output.stored_as(key)

    async def restore(
        self, workspace_id: WorkspaceId, key: str, report: Report, expected: ExpectedArchive
    ) -> None:
        await self._root.run(lambda: make_volume(self._root.volume(workspace_id)))
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
        await self._root.run(lambda: None)
        request = job_request(self._store, key, str(self._root.volume(workspace_id)), expected)
        with self._locked(workspace_id) as lock:
            return await run_job(
                operation, request, report, inherited=(lock,), grace_seconds=self._grace_seconds
            )

    @contextlib.contextmanager
    def _locked(self, workspace_id: WorkspaceId) -> Iterator[int]:
        with translate_errors(), contextlib.ExitStack() as stack:
            try:
                lock = self._root.locks / f"{parse_workspace_id(workspace_id)}.job"
                descriptor = stack.enter_context(exclusive(lock))
            except BlockingIOError as error:
                raise Transient(
                    ErrorReason.ACTION_FAILED, "Another job is still using this volume; try again later."
                ) from error
            yield descriptor


# What a job needs of our environment; the rest holds credentials that are none of its business.
PASSED_ON = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
# A third of what others get where there is not enough for all.
NICENESS = 5
_log = logging.getLogger(__name__)


async def run_job(
    operation: str,
    request: bytes,
    report: Report,
    *,
    inherited: Sequence[int] = (),
    grace_seconds: float = 10.0,
) -> JobOutput:
    """Run it to its end; raise what it failed with. `inherited` are descriptors that it keeps open."""
    async with _started(operation, inherited, grace_seconds) as process:
        output = JobOutput(report)
        await _talk(process, request, output)
    output.check(process.returncode)
    return output


@contextlib.asynccontextmanager
async def _started(
    operation: str, inherited: Sequence[int], grace_seconds: float
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "storage_job", operation),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: os.environ[name] for name in (*PASSED_ON, *PROXIES) if name in os.environ},
        pass_fds=inherited,
        # Keep Ctrl-C in our terminal from killing the job: cancellation ends it cleanly instead.
        start_new_session=True,
    )
    if operation == "archive":
        _yield_to_others(process.pid)
    try:
        yield process
    finally:
        await _end(process, grace_seconds)


async def _talk(process: asyncio.subprocess.Process, request: bytes, output: JobOutput) -> None:
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 (we asked for pipes)
    stderr = asyncio.create_task(_log_lines(process.stderr, output))
    try:
        # A job that ends before it has read everything says why on stdout.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(request)
            await process.stdin.drain()
            process.stdin.close()
        async for line in process.stdout:
            output.take(line)
        await process.wait()
        await stderr
    finally:
        stderr.cancel()


async def _end(process: asyncio.subprocess.Process, grace_seconds: float) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), grace_seconds)
    except TimeoutError:
        _log.warning("A storage job did not end when asked and is killed.")
    finally:
        # Also when cancelled once more.
        if process.returncode is None:
            process.kill()
            await process.wait()


def _yield_to_others(process_id: int) -> None:
    """Nobody waits for an archive, and people do for what else this machine does.

    One processor is left alone, where there are several: a start wakes dozens of times, and each time would
    wait for the time slice of a job. Where the kernel groups processes by session, it compares the groups,
    and niceness counts inside of one.
    """
    with contextlib.suppress(OSError):
        _, *others = sorted(os.sched_getaffinity(process_id))
        if others:
            os.sched_setaffinity(process_id, others)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process_id, NICENESS)
    with contextlib.suppress(OSError):
        Path(f"/proc/{process_id}/autogroup").write_text(str(NICENESS))


async def _log_lines(stream: asyncio.StreamReader, output: JobOutput) -> None:
    async for line in stream:
        text = line.decode(errors="replace").rstrip()[:1000]
        output.complaint = text
        _log.warning("storage job: %s", text)
