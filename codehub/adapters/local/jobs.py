"""Storage jobs as subprocesses: told everything on stdin, heard on stdout, ended with their caller."""

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from pathlib import Path

from codehub.adapters.local.locks import exclusive
from codehub.adapters.local.root import LocalRoot, translated
from codehub.adapters.local.volumes import make_volume
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import parse_workspace_id
from codehub.domain.states import ErrorReason
from codehub.job_output import JobOutput
from codehub.ports import ArchiveStore, Report, StoredArchive

# What a job needs of our environment; the rest holds credentials that are none of its business.
PASSED_ON = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
# A third of what others get where there is not enough for all.
NICENESS = 5
_log = logging.getLogger(__name__)


class LocalStorageJobs:
    """One job per workspace at a time: its process itself holds the lock, so not even our death frees it."""

    def __init__(self, root: Path, store: ArchiveStore, *, grace_seconds: float = 10.0) -> None:
        self._root = LocalRoot.at(root)
        self._store = store
        self._grace_seconds = grace_seconds

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("archive", workspace_id, key, report)
        return output.stored_as(key)

    async def restore(self, workspace_id: WorkspaceId, key: str, report: Report) -> None:
        await self._root.run(lambda: make_volume(self._root.volume(workspace_id)))
        await self._run("restore", workspace_id, key, report)

    async def create_empty(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        output = await self._run("create-empty", workspace_id, key, report)
        return output.stored_as(key)

    async def _run(self, operation: str, workspace_id: WorkspaceId, key: str, report: Report) -> JobOutput:
        await self._root.run(lambda: None)
        with self._locked(workspace_id) as lock:
            async with self._started(operation, lock) as process:
                output = JobOutput(report)
                await self._talk(process, self._request(workspace_id, key), output)
        output.check(process.returncode)
        return output

    @contextlib.contextmanager
    def _locked(self, workspace_id: WorkspaceId) -> Iterator[int]:
        with translated(), contextlib.ExitStack() as stack:
            try:
                lock = self._root.locks / f"{parse_workspace_id(workspace_id)}.job"
                descriptor = stack.enter_context(exclusive(lock))
            except BlockingIOError as error:
                raise Transient(
                    ErrorReason.ACTION_FAILED, "Another job still works on this volume; try again later."
                ) from error
            yield descriptor

    def _request(self, workspace_id: WorkspaceId, key: str) -> bytes:
        store = asdict(self._store)
        bucket = store.pop("bucket")
        place = {"archive_url": f"s3://{bucket}/{key}", "data_dir": str(self._root.volume(workspace_id))}
        return json.dumps(store | place).encode()

    @contextlib.asynccontextmanager
    async def _started(self, operation: str, lock: int) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "storage_job", operation),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={name: os.environ[name] for name in (*PASSED_ON, *PROXIES) if name in os.environ},
            pass_fds=(lock,),
            # A Ctrl-C in our terminal is ours to handle: the job ends when it is cancelled, and tidily.
            start_new_session=True,
        )
        if operation == "archive":
            _yield_to_others(process.pid)
        try:
            yield process
        finally:
            await self._end(process)

    async def _talk(self, process: asyncio.subprocess.Process, request: bytes, output: JobOutput) -> None:
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

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), self._grace_seconds)
        except TimeoutError:
            _log.warning("A storage job did not end when asked and is killed.")
        finally:
            # Also when cancelled once more.
            if process.returncode is None:
                process.kill()
                await process.wait()


def _yield_to_others(process_id: int) -> None:
    """Nobody waits for an archive, and people do for what else this machine does.

    Where the kernel groups processes by session, it compares the groups, and niceness counts inside of one.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process_id, NICENESS)
    with contextlib.suppress(OSError):
        Path(f"/proc/{process_id}/autogroup").write_text(str(NICENESS))


async def _log_lines(stream: asyncio.StreamReader, output: JobOutput) -> None:
    async for line in stream:
        text = line.decode(errors="replace").rstrip()[:1000]
        output.complaint = text
        _log.warning("storage job: %s", text)
