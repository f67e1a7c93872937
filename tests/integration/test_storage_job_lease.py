"""A job with a lease stops when its caller stops renewing it, and its last line is also in a file."""

import json
import os
import signal
from pathlib import Path

import pytest

from storage_job.lease import Lease
from tests.buckets import Bucket
from tests.storage_jobs import KEY, META_KEY, JobProcess, path_with_fake, request_for

LEASE_SECONDS = "1"
EXIT_AFTER_SIGHUP = 128 + signal.SIGHUP


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis").write_text("three years of work")
    return tmp_path / "home"


def options(directory: Path, *more: str) -> tuple[str, ...]:
    return ("--lease", str(directory / "lease"), "--result", str(directory / "result"), *more)


async def stalled_job(bucket: Bucket, home: Path, *more: str) -> JobProcess:
    os.mkfifo(home.parent / "never")
    path = path_with_fake(home.parent / "fakes", "tar", f"read -r line < {home.parent}/never")
    return await JobProcess.start(
        "archive", request_for(bucket, home), path, options=options(home.parent, *more)
    )


async def test_a_finished_job_leaves_its_last_line_in_the_file(bucket: Bucket, home: Path) -> None:
    job = await JobProcess.start("archive", request_for(bucket, home), options=options(home.parent))
    run = await job.finish()
    assert (run.code, run.events[-1]["event"]) == (0, "done")
    assert json.loads((home.parent / "result").read_text()) == run.events[-1]
    assert {KEY, META_KEY} == {*await bucket.keys()}


async def test_a_failed_job_leaves_its_last_line_in_the_file(bucket: Bucket, home: Path) -> None:
    job = await JobProcess.start("restore", request_for(bucket, home), options=options(home.parent))
    run = await job.finish()
    assert run.events[-1]["reason"] == "DataLost"
    assert json.loads((home.parent / "result").read_text()) == run.events[-1]


async def test_a_job_stops_when_its_lease_is_not_renewed(bucket: Bucket, home: Path) -> None:
    run = await (await stalled_job(bucket, home, "--lease-seconds", LEASE_SECONDS)).finish()
    assert run.code == EXIT_AFTER_SIGHUP
    assert run.events[-1]["message"] == "The job was stopped before it finished. Run it again."
    assert await bucket.keys() == []
    assert await bucket.unfinished_uploads() == []


async def test_a_job_goes_on_while_its_lease_is_renewed(bucket: Bucket, home: Path) -> None:
    job = await stalled_job(bucket, home, "--lease-seconds", LEASE_SECONDS)
    # The job prints twice a second, so this takes several times as long as the lease.
    for number in range(8):
        (home.parent / "lease").write_text(str(number))
        assert (await job.next_event() or {})["event"] == "progress"
    assert job.process.returncode is None
    job.process.terminate()
    assert (await job.finish()).code == 128 + signal.SIGTERM


def test_a_lease_counts_only_changes(tmp_path: Path) -> None:
    clock = [100.0]
    lease = Lease(tmp_path / "lease", seconds=60, clock=lambda: clock[0])
    clock[0] = 160
    assert not lease.expired()
    lease.file.write_text("1")
    assert not lease.expired()
    clock[0] = 220
    lease.file.touch()
    assert not lease.expired()
    clock[0] = 220.1
    assert lease.expired()
