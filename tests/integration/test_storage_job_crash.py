"""Whatever a killed or stopped job leaves behind, the next run repairs."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from storage_job.volume import WORK_NAME
from testkit.trees import describe_tree
from testkit.waiting import DEADLINE_SECONDS, until
from tests.buckets import Bucket
from tests.storage_jobs import (
    META_KEY,
    JobProcess,
    archive,
    path_with_fake,
    request_for,
    restore,
)

# More than the compressor buffers: one block for each of its threads and three more.
HOME_BYTES = 80_000_000
PART_BYTES = 5 * 1024 * 1024


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "random").write_bytes(os.urandom(HOME_BYTES))
    return tmp_path / "home"


async def stalled(operation: str, request: dict[str, Any], enough: int) -> JobProcess:
    """Start a job whose tar does its work and then hangs; return when `enough` bytes were transferred."""
    directory = Path(request["data_dir"]).parent / "fakes"
    directory.mkdir()
    os.mkfifo(directory / "never")
    script = f'PATH=/usr/bin:/bin; tar "$@" || exit; : > {directory}/done; read -r line < {directory}/never'
    job = await JobProcess.start(operation, request, path_with_fake(directory, "tar", script))
    event = await job.next_event()
    while event is not None and event.get("bytes", 0) < enough:
        event = await job.next_event()
    assert event is not None

    async def tar_is_done() -> bool:
        return (directory / "done").exists()

    # Earlier, the script has a child that would keep the pipes open after the script is killed.
    await until(tar_is_done, "tar is done")
    return job


async def stalled_archive(bucket: Bucket, home: Path) -> JobProcess:
    request = request_for(bucket, home, part_size=PART_BYTES)
    return await stalled("archive", request, enough=2 * PART_BYTES)


async def stalled_restore(bucket: Bucket, home: Path, volume: Path) -> JobProcess:
    await archive(bucket, home)
    return await stalled("restore", request_for(bucket, volume), enough=HOME_BYTES)


def descendants(job: JobProcess) -> list[psutil.Process]:
    return psutil.Process(job.process.pid).children(recursive=True)


def is_alive(process: psutil.Process) -> bool:
    # An orphan stays a zombie until process 1 reaps it.
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def assert_gone(processes: list[psutil.Process]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while any(map(is_alive, processes)):  # noqa: ASYNC110 (orphans send no event)
            await asyncio.sleep(0.01)


def assert_no_credentials_visible(bucket: Bucket, job: JobProcess) -> None:
    processes = [psutil.Process(job.process.pid), *descendants(job)]
    assert len(processes) > 1
    for process in processes:
        visible = " ".join([*process.cmdline(), *process.environ().values()])
        assert bucket.server.secret_key not in visible
        assert bucket.server.access_key not in visible


async def test_a_job_killed_while_uploading_is_repaired_by_the_next(bucket: Bucket, home: Path) -> None:
    job = await stalled_archive(bucket, home)
    children = descendants(job)
    assert_no_credentials_visible(bucket, job)
    job.process.kill()
    await job.finish()
    await assert_gone(children)
    assert len(await bucket.unfinished_uploads()) == 1
    assert await bucket.keys() == []
    assert not (await archive(bucket, home)).skipped
    assert await bucket.unfinished_uploads() == []
    assert META_KEY in await bucket.keys()


async def test_a_job_stopped_while_uploading_cleans_up(bucket: Bucket, home: Path) -> None:
    job = await stalled_archive(bucket, home)
    children = descendants(job)
    job.process.send_signal(signal.SIGTERM)
    run = await job.finish()
    assert (run.code, run.events[-1]["event"], run.stderr) == (128 + signal.SIGTERM, "error", "")
    await assert_gone(children)
    assert await bucket.unfinished_uploads() == []
    assert await bucket.keys() == []


async def test_a_job_killed_while_restoring_is_repaired_by_the_next(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    job = await stalled_restore(bucket, home, volume)
    children = descendants(job)
    job.process.kill()
    await job.finish()
    await assert_gone(children)
    assert (volume / WORK_NAME / "staging").is_dir()
    assert (volume / "old").read_text() == "old"
    await restore(bucket, volume)
    assert describe_tree(volume) == describe_tree(home)


async def test_a_job_stopped_while_restoring_leaves_the_old_content(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    job = await stalled_restore(bucket, home, volume)
    job.process.send_signal(signal.SIGTERM)
    assert (await job.finish()).code == 128 + signal.SIGTERM
    assert describe_tree(volume).keys() == {b".", b"old"}


async def test_a_job_stops_when_its_parent_is_gone(bucket: Bucket, home: Path) -> None:
    job = await stalled_archive(bucket, home)
    transport = job.process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
    transport.close()
    assert await asyncio.wait_for(job.process.wait(), DEADLINE_SECONDS) != 0
    assert await bucket.unfinished_uploads() == []


async def test_a_job_reports_work_while_it_only_reads(bucket: Bucket, tmp_path: Path) -> None:
    """Gigabytes of zeros fill no part: a job that reads them must not look stuck."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "zeros").write_bytes(bytes(HOME_BYTES))
    job = await stalled("archive", request_for(bucket, home), enough=0)
    event = await job.next_event()
    while event is not None and event["work"] < HOME_BYTES:
        event = await job.next_event()
    assert event is not None
    assert event["bytes"] == 0
    assert await job.next_event() == event
    job.process.kill()
    await job.process.wait()
