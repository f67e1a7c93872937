"""Storage jobs as subprocesses on local volumes."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from codehub.adapters.local.locks import try_lock
from codehub.adapters.local.owners import Owners
from codehub.adapters.local.root import LocalRoot, translate_errors
from codehub.adapters.local.volumes import create_volume
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import parse_workspace_id
from codehub.domain.states import ErrorReason
from codehub.job_protocol import JobOutput, job_request
from codehub.ports import UNRECORDED, ArchiveStore, ExpectedArchive, Report, StoredArchive

# The uid in the images. All files of a local home belong to one user, so archives name this uid everywhere,
# and every backend can restore them.
ARCHIVED_UID = 1000


class LocalStorageJobs:
    """Runs one job per workspace at a time. The job holds the lock, so it outlives a killed caller."""

    def __init__(self, root: Path, store: ArchiveStore, *, grace_seconds: float = 10.0) -> None:
        self._root = LocalRoot.at(root)
        self._store = store
        self._grace_seconds = grace_seconds

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("archive", workspace_id, key, report)
        return output.stored_archive(key)

    async def restore(
        self, workspace_id: WorkspaceId, key: str, report: Report, expected: ExpectedArchive
    ) -> None:
        await self._root.run(lambda: self._prepare_restore(workspace_id))
        await self._run("restore", workspace_id, key, report, expected)

    async def create_empty(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("create-empty", workspace_id, key, report)
        return output.stored_archive(key)

    async def remove_abandoned(self) -> int:
        """Return 0: a job ends with its caller, and its credentials were only in its memory."""
        return 0

    def _prepare_restore(self, workspace_id: WorkspaceId) -> None:
        create_volume(self._root.volume(workspace_id))
        # The archive has other owners, so the next start gives the home to its workspace.
        if os.geteuid() == 0:
            Owners(self._root, None).disown(workspace_id)

    async def _run(
        self,
        operation: str,
        workspace_id: WorkspaceId,
        key: str,
        report: Report,
        expected: ExpectedArchive = UNRECORDED,
    ) -> JobOutput:
        await self._root.run(lambda: None)
        volume = str(self._root.volume(workspace_id))
        request = job_request(self._store, key, volume, expected, owner=ARCHIVED_UID)
        with self._locked(workspace_id) as lock:
            return await run_job(
                operation, request, report, inherited=(lock,), grace_seconds=self._grace_seconds
            )

    @contextlib.contextmanager
    def _locked(self, workspace_id: WorkspaceId) -> Iterator[int]:
        with translate_errors(), contextlib.ExitStack() as stack:
            try:
                lock = self._root.locks / f"{parse_workspace_id(workspace_id)}.job"
                descriptor = stack.enter_context(try_lock(lock))
            except BlockingIOError as error:
                raise Transient(
                    ErrorReason.ACTION_FAILED, "Another job is still using this volume; try again later."
                ) from error
            yield descriptor


# The environment variables that a job gets; the others can hold credentials.
INHERITED_VARIABLES = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE")
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
# About a third of the processor time of other processes under load.
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
    """Run the job and raise its failure. It inherits the descriptors in `inherited`."""
    async with _run_process(operation, inherited, grace_seconds) as process:
        output = JobOutput(report)
        await _exchange(process, request, output)
    output.check(process.returncode)
    return output


@contextlib.asynccontextmanager
async def _run_process(
    operation: str, inherited: Sequence[int], grace_seconds: float
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "storage_job", operation),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            name: os.environ[name] for name in (*INHERITED_VARIABLES, *PROXY_VARIABLES) if name in os.environ
        },
        pass_fds=inherited,
        # Ctrl-C in this terminal must not kill the job: cancellation ends it cleanly.
        start_new_session=True,
    )
    if operation == "archive":
        _lower_priority(process.pid)
    try:
        yield process
    finally:
        await _end(process, grace_seconds)


async def _exchange(process: asyncio.subprocess.Process, request: bytes, output: JobOutput) -> None:
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 (all are pipes)
    stderr = asyncio.create_task(_log_stderr(process.stderr, output))
    try:
        # A job that ends before it has read everything reports why on stdout.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(request)
            await process.stdin.drain()
            process.stdin.close()
        async for line in process.stdout:
            output.feed(line)
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
        _log.warning("A storage job did not terminate and is killed.")
    finally:
        # Also if this is cancelled again.
        if process.returncode is None:
            process.kill()
            await process.wait()


def _lower_priority(process_id: int) -> None:
    """Let other processes go first: people wait for them, but not for an archive.

    Leave one processor alone if there are several: a starting IDE wakes dozens of times and would wait each
    time for the time slice of a job. With autogroups, the kernel compares sessions, and niceness counts only
    within a session, so set both.
    """
    with contextlib.suppress(OSError):
        _, *others = sorted(os.sched_getaffinity(process_id))
        if others:
            os.sched_setaffinity(process_id, others)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process_id, NICENESS)
    with contextlib.suppress(OSError):
        Path(f"/proc/{process_id}/autogroup").write_text(str(NICENESS))


async def _log_stderr(stream: asyncio.StreamReader, output: JobOutput) -> None:
    async for line in stream:
        text = line.decode(errors="replace").rstrip()[:1000]
        output.stderr = text
        _log.warning("storage job: %s", text)
