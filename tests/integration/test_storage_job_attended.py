"""An attended job stops when its stdin is closed."""

import os
from pathlib import Path

from tests.buckets import Bucket
from tests.storage_jobs import KEY, META_KEY, JobProcess, JobRun, path_with_fake, request_for

EXIT_AFTER_SIGHUP = 129


async def start_attended(bucket: Bucket, home: Path, path: str | None = None) -> JobProcess:
    return await JobProcess.start("archive", request_for(bucket, home), path, attended=True)


def new_home(directory: Path) -> Path:
    home = directory / "home"
    home.mkdir()
    (home / "thesis").write_text("three years of work")
    return home


async def close_stdin(job: JobProcess) -> JobRun:
    assert job.process.stdin is not None
    job.process.stdin.close()
    return await job.finish()


async def test_a_job_finishes_while_stdin_is_open(bucket: Bucket, tmp_path: Path) -> None:
    run = await (await start_attended(bucket, new_home(tmp_path))).finish()
    assert (run.code, run.events[-1]["event"], run.stderr) == (0, "done", "")
    assert {KEY, META_KEY} == {*await bucket.keys()}


async def test_a_job_stops_with_a_message_when_stdin_is_closed(bucket: Bucket, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never")
    path = path_with_fake(tmp_path / "fakes", "tar", f"read -r line < {tmp_path}/never")
    job = await start_attended(bucket, new_home(tmp_path), path)
    assert (await job.next_event() or {})["event"] == "progress"
    run = await close_stdin(job)
    assert run.code == EXIT_AFTER_SIGHUP
    assert run.events[-1] == {
        "event": "error",
        "reason": "ActionFailed",
        "message": "The job was stopped before it finished. Run it again.",
    }
    assert await bucket.keys() == []
    assert await bucket.unfinished_uploads() == []
