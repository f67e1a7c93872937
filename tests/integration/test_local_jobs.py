"""Storage jobs as subprocesses: they end with their worker, hold a lock until then, and show no secret."""

import asyncio
import os
import signal
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from codehub.adapters.local.locks import try_lock
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.storage_jobs import LocalStorageJobs
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Failure, Permanent, Transient
from codehub.domain.naming import archive_key
from codehub.domain.states import ErrorReason
from codehub.job_protocol import JobOutput
from codehub.ports import UNRECORDED, ArchiveStore, Progress
from tests.contracts.instance_harness import eventually
from tests.contracts.job_harness import running_jobs

WORKSPACE_ID = WorkspaceId(str(uuid.uuid4()))
KEY = archive_key(WORKSPACE_ID, str(uuid.uuid4()))
SECRET = "very-secret"  # noqa: S105 (and of nobody)
WORKER = """
import asyncio, sys
from pathlib import Path
from codehub.adapters.local.storage_jobs import LocalStorageJobs
from codehub.ports import UNRECORDED, ArchiveStore

store = ArchiveStore("bucket", "id", "secret", endpoint_url=sys.argv[2])
jobs = LocalStorageJobs(Path(sys.argv[1]), store)
asyncio.run(jobs.archive(sys.argv[3], sys.argv[4], lambda _: print("begun", flush=True)))
"""


@pytest.fixture
def root(tmp_path: Path) -> LocalRoot:
    root = LocalRoot.at(tmp_path)
    root.prepare()
    root.volume(WORKSPACE_ID).mkdir()
    return root


@pytest.fixture
def silent_endpoint() -> Iterator[str]:
    """A store that accepts connections and never responds, so that jobs do not end by themselves."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
async def jobs(root: LocalRoot, silent_endpoint: str) -> AsyncIterator[LocalStorageJobs]:
    store = ArchiveStore("bucket", "key-id", SECRET, endpoint_url=silent_endpoint)
    yield LocalStorageJobs(root.path, store, grace_seconds=0.5)
    assert running_jobs() == []


async def begin(jobs: LocalStorageJobs) -> "asyncio.Task[object]":
    begun = asyncio.Event()
    task: asyncio.Task[object] = asyncio.create_task(jobs.archive(WORKSPACE_ID, KEY, lambda _: begun.set()))
    await asyncio.wait_for(begun.wait(), 20)
    return task


def is_free(root: LocalRoot) -> bool:
    try:
        with try_lock(root.locks / f"{WORKSPACE_ID}.job"):
            return True
    except BlockingIOError:
        return False


async def end(task: "asyncio.Task[object]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_no_secret_is_visible_from_outside(
    jobs: LocalStorageJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEHUB_S3_SECRET_KEY", SECRET)
    task = await begin(jobs)
    (job,) = running_jobs()
    visible = " ".join([*job.cmdline(), *job.environ(), *job.environ().values()])
    await end(task)
    assert SECRET not in visible
    assert "CODEHUB_" not in visible


async def test_an_archive_job_has_a_low_priority(jobs: LocalStorageJobs) -> None:
    task = await begin(jobs)
    (job,) = running_jobs()
    niceness, processors = job.nice(), set(job.cpu_affinity())
    group = Path(f"/proc/{job.pid}/autogroup")
    group_niceness = group.read_text().split()[-1] if group.exists() else "5"
    await end(task)
    assert (niceness, group_niceness) == (5, "5")
    ours = os.sched_getaffinity(0)
    assert processors == (ours - {min(ours)} or ours)


async def test_a_job_that_ignores_sigterm_is_killed(jobs: LocalStorageJobs) -> None:
    task = await begin(jobs)
    (job,) = running_jobs()
    job.suspend()
    await end(task)
    assert not job.is_running()


async def test_a_job_ends_after_its_worker_and_blocks_other_jobs_until_then(
    jobs: LocalStorageJobs, root: LocalRoot, silent_endpoint: str
) -> None:
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORKER, str(root.path), silent_endpoint, WORKSPACE_ID, KEY),
        stdout=asyncio.subprocess.PIPE,
    )
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"begun\n"
    (job,) = psutil.Process(worker.pid).children()
    job.suspend()
    worker.kill()
    await worker.wait()
    with pytest.raises(Transient, match="Another job is still using this volume"):
        await jobs.restore(WORKSPACE_ID, KEY, lambda _: None, UNRECORDED)
    job.resume()
    # A zombie is not enough: its threads can still run and hold the lock.
    await eventually(lambda: is_free(root))
    await end(await begin(jobs))


async def test_a_missing_root_is_unreachable(jobs: LocalStorageJobs, root: LocalRoot) -> None:
    (root.path / ".codehub-root").unlink()
    for work in (
        jobs.archive(WORKSPACE_ID, KEY, lambda _: None),
        jobs.restore(WORKSPACE_ID, KEY, lambda _: None, UNRECORDED),
    ):
        with pytest.raises(Transient) as caught:
            await work
        assert caught.value.reason is ErrorReason.UNREACHABLE


def failure_of(returncode: int, *lines: bytes, stderr: str = "") -> Failure:
    output = JobOutput(lambda _: None, stderr)
    for line in lines:
        output.feed(line)
    with pytest.raises(Failure) as caught:
        output.check(returncode)
    return caught.value


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (10, Permanent, ErrorReason.DATA_LOST),
        (11, Transient, ErrorReason.UNREACHABLE),
        (12, Permanent, ErrorReason.ARCHIVE_CORRUPTED),
        (13, Transient, ErrorReason.ACTION_FAILED),
        (2, Transient, ErrorReason.ACTION_FAILED),
        (0, Transient, ErrorReason.ACTION_FAILED),
        (-signal.SIGKILL, Transient, ErrorReason.ACTION_FAILED),
    ],
)
def test_a_job_without_a_final_message_is_judged_by_its_exit_status(
    code: int, kind: type[Failure], reason: ErrorReason
) -> None:
    failure = failure_of(code, stderr="MemoryError")
    assert (type(failure), failure.reason) == (kind, reason)
    assert "MemoryError" in failure.message


def test_the_final_message_of_a_job_is_passed_on_with_a_limit() -> None:
    line = b'{"event": "error", "reason": "DataLost", "message": "' + b"gone " * 1000 + b'"}'
    failure = failure_of(10, line)
    assert failure.reason is ErrorReason.DATA_LOST
    assert failure.message.startswith("gone ")
    assert len(failure.message) == 500


def test_progress_is_passed_on_and_noise_is_not() -> None:
    reports: list[Progress] = []
    output = JobOutput(reports.append)
    output.feed(b"Segmentation fault\n")
    output.feed(b"[]\n")
    output.feed(b'{"event": "progress", "phase": "upload", "bytes": 5, "total": null}\n')
    assert reports == [Progress("upload", 5, None)]


def test_a_stalled_job_reports_nothing_although_it_repeats_its_progress() -> None:
    reports: list[Progress] = []
    output = JobOutput(reports.append)
    for work in (7, 7, 7, 8):
        output.feed(
            b'{"event": "progress", "phase": "upload", "bytes": 5, "total": null, "work": %d}\n' % work
        )
    assert reports == [Progress("upload", 5, None)] * 2
