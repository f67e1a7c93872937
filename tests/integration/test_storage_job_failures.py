"""No failure of tar goes unnoticed, and the last line of output reports every failure."""

import asyncio
import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from storage_job.errors import JobError, Reason
from storage_job.progress import Outcome
from storage_job.volume import locked
from testkit.trees import describe_tree
from tests.buckets import Bucket
from tests.storage_jobs import archive, path_with_fake, request_for, restore, run_job

TAR = shutil.which("tar")
Job = Callable[[Bucket, Path], Awaitable[Outcome]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").write_text("content")
    return tmp_path / "home"


def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    monkeypatch.setenv("PATH", path_with_fake(tmp_path / "fakes", "tar", script))


@pytest.mark.parametrize(
    "end", ["exit 2", "exit 1", "kill -KILL $$"], ids=["tar fails", "a file changed as tar read it", "killed"]
)
async def test_a_failing_process_is_never_masked(
    bucket: Bucket, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
) -> None:
    # Its output is complete; only its status shows the failure.
    fake(monkeypatch, tmp_path, f'{TAR} "$@"; echo complaint >&2; {end}')
    with pytest.raises(JobError, match="complaint") as caught:
        await archive(bucket, home)
    assert caught.value.reason is Reason.ACTION_FAILED
    assert await bucket.keys() == []
    assert await bucket.unfinished_uploads() == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("cat > /dev/null; echo 'tar: x: Cannot write: No space left on device' >&2; exit 2", "full"),
        ("exit 2", "status 2"),
        (f'{TAR} "$@"; exit 2', "status 2"),
        (f'{TAR} "$@"; kill -KILL $$', "status -9"),
        ("kill -KILL $$", "status -9"),
    ],
)
async def test_a_failed_extraction_leaves_the_old_content(
    bucket: Bucket,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    script: str,
    reason: str,
) -> None:
    await archive(bucket, home)
    (home / "file").write_text("old")
    fake(monkeypatch, tmp_path, script)
    with pytest.raises(JobError, match=reason) as caught:
        await restore(bucket, home)
    assert caught.value.reason is Reason.ACTION_FAILED
    assert describe_tree(home).keys() == {b".", b"file"}
    assert (home / "file").read_text() == "old"


async def test_options_in_the_environment_do_not_change_archives(
    bucket: Bucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAR_OPTIONS", "--exclude=file")
    assert (await archive(bucket, home)).entries == 2


@pytest.mark.parametrize("operation", [archive, restore])
async def test_two_jobs_never_share_a_volume(bucket: Bucket, home: Path, operation: Job) -> None:
    with locked(home), pytest.raises(JobError, match="Another job") as caught:
        await operation(bucket, home)
    assert caught.value.reason is Reason.ACTION_FAILED


async def test_a_failure_gives_the_last_line_and_the_exit_code(bucket: Bucket, home: Path) -> None:
    run = await run_job("restore", request_for(bucket, home))
    assert (run.code, run.stderr) == (10, "")
    assert run.events[-1]["event"] == "error"
    assert run.events[-1]["reason"] == "DataLost"


async def test_success_gives_the_last_line_and_exit_code_zero(bucket: Bucket, home: Path) -> None:
    run = await run_job("archive", request_for(bucket, home))
    assert (run.code, run.stderr) == (0, "")
    first = {"event": "progress", "phase": "upload", "bytes": 0, "total": None}
    assert run.events[0] == {**first, "work": run.events[0]["work"]}
    assert run.events[-1].keys() == {
        *("event", "bytes", "sha256", "entries"),
        *("uncompressed", "skipped", "difference"),
    }
    assert run.events[-1]["entries"] == 2


async def test_a_job_exits_without_finalizing_the_interpreter(bucket: Bucket, home: Path) -> None:
    # Threads of the download client that still run would abort the process, and its exit code would be lost.
    script = "import atexit, runpy, sys; atexit.register(print, 'finalized'); sys.argv[1:] = ['restore']; "
    script += "runpy.run_module('storage_job', run_name='__main__')"
    request = json.dumps(request_for(bucket, home)).encode()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate(request)
    assert process.returncode == 10
    assert b"DataLost" in output
    assert b"finalized" not in output


async def test_an_invalid_request_is_explained_without_the_secret(tmp_path: Path) -> None:
    run = await run_job("archive", {"archive_url": "nonsense", "access_key": "a", "secret_key": "the-secret"})
    assert run.code == 2
    assert "s3://bucket" in run.events[-1]["message"]
    assert "the-secret" not in json.dumps(run.events) + run.stderr
