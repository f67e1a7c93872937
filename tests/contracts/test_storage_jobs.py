"""The contract of `StorageJobs`, for every implementation."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Failure, Permanent, Transient
from codehub.domain.naming import META_SUFFIX, archive_key, meta_key
from codehub.domain.states import ErrorReason
from codehub.ports import UNRECORDED, ExpectedArchive, Progress, StorageJobs, StoredArchive
from testkit.docker_engine import JOB_IMAGE, need_docker, opened_engine
from testkit.waiting import DEADLINE_SECONDS
from tests.buckets import Bucket
from tests.contracts.job_harness import DockerHarness, FakeHarness, JobHarness, LocalHarness

EMPTY_ZSTD_FRAME = bytes.fromhex("28b52ffd240001000099e9d851")
HOME = {"thesis": b"three years of work", "notes": b""}


@pytest.fixture(params=["fake", "local", "docker"])
async def harness(
    request: pytest.FixtureRequest, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[JobHarness]:
    if request.param == "docker":
        need_docker(JOB_IMAGE)
        async with opened_engine() as engine:
            yield DockerHarness(engine, bucket)
    elif request.param == "fake":
        yield FakeHarness()
    else:
        yield LocalHarness(tmp_path, bucket, monkeypatch)


@pytest.fixture
def workspace_id() -> WorkspaceId:
    return WorkspaceId(str(uuid.uuid4()))


@pytest.fixture
def key(workspace_id: WorkspaceId) -> str:
    return archive_key(workspace_id, str(uuid.uuid4()))


def ignore(_: Progress) -> None:
    pass


async def failure_of(work: Awaitable[object]) -> Failure:
    with pytest.raises(Failure) as caught:
        await work
    return caught.value


class RunningJob:
    """Start an archive job."""

    def __init__(self, jobs: StorageJobs, workspace_id: WorkspaceId, key: str) -> None:
        self._begun = asyncio.Event()
        self.task = asyncio.create_task(jobs.archive(workspace_id, key, lambda _: self._begun.set()))

    async def begun(self) -> "RunningJob":
        await asyncio.wait_for(self._begun.wait(), DEADLINE_SECONDS)
        return self

    async def cancel(self) -> None:
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task


async def test_an_archived_home_is_restored(harness: JobHarness, workspace_id: WorkspaceId, key: str) -> None:
    harness.write_home(workspace_id, HOME)
    reports: list[Progress] = []
    stored = await harness.jobs.archive(workspace_id, key, reports.append)
    content = await harness.read(key)
    assert content is not None
    assert stored == StoredArchive(key, len(content), hashlib.sha256(content).hexdigest())
    assert (await harness.read(meta_key(key)) or b"").splitlines()[0].decode() == f"sha256:{stored.sha256}"
    assert reports
    harness.write_home(workspace_id, {"extra": b"goes away", "thesis": b"overwritten"})
    await harness.jobs.restore(workspace_id, key, reports.append, UNRECORDED)
    assert harness.read_home(workspace_id) == HOME


async def test_a_committed_archive_is_not_uploaded_again(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    harness.write_home(workspace_id, HOME)
    first = await harness.jobs.archive(workspace_id, key, ignore)
    before = await harness.read(key)
    harness.write_home(workspace_id, {"later": b"is not in it"})
    assert await harness.jobs.archive(workspace_id, key, ignore) == first
    assert await harness.read(key) == before


async def test_an_archive_without_its_meta_is_uploaded_again(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    harness.write_home(workspace_id, HOME)
    await harness.write(key, b"what a crash has left")
    stored = await harness.jobs.archive(workspace_id, key, ignore)
    assert hashlib.sha256(await harness.read(key) or b"").hexdigest() == stored.sha256
    assert await harness.read(meta_key(key)) is not None


async def test_a_restore_creates_the_volume_and_can_be_run_again(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    harness.write_home(workspace_id, HOME)
    await harness.jobs.archive(workspace_id, key, ignore)
    elsewhere = WorkspaceId(str(uuid.uuid4()))
    for _ in range(2):
        await harness.jobs.restore(elsewhere, key, ignore, UNRECORDED)
        assert harness.read_home(elsewhere) == HOME


async def test_an_empty_archive_restores_to_an_empty_home(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    stored = await harness.jobs.create_empty(workspace_id, key, ignore)
    assert await harness.jobs.create_empty(workspace_id, key, ignore) == stored
    assert harness.read_home(workspace_id) is None
    await harness.jobs.restore(workspace_id, key, ignore, UNRECORDED)
    assert harness.read_home(workspace_id) == {}


async def test_a_missing_archive_is_lost_data(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    failure = await failure_of(harness.jobs.restore(workspace_id, key, ignore, UNRECORDED))
    assert (type(failure), failure.reason) == (Permanent, ErrorReason.DATA_LOST)


async def test_an_uncommitted_archive_is_lost_data_and_the_volume_keeps_its_files(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    harness.write_home(workspace_id, HOME)
    await harness.write(key, b"what a crash has left")
    failure = await failure_of(harness.jobs.restore(workspace_id, key, ignore, UNRECORDED))
    assert failure.reason is ErrorReason.DATA_LOST
    assert harness.read_home(workspace_id) == HOME


async def test_a_damaged_archive_is_corrupted_and_the_volume_keeps_its_files(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    harness.write_home(workspace_id, HOME)
    await harness.write(key, EMPTY_ZSTD_FRAME)
    await harness.write(meta_key(key), f"sha256:{'0' * 64}\n".encode())
    failure = await failure_of(harness.jobs.restore(workspace_id, key, ignore, UNRECORDED))
    assert (type(failure), failure.reason) == (Permanent, ErrorReason.ARCHIVE_CORRUPTED)
    assert harness.read_home(workspace_id) == HOME


async def exchange(harness: JobHarness, workspace_id: WorkspaceId, key: str) -> StoredArchive:
    """Archive HOME, then replace the archive and its meta with a matching pair."""
    harness.write_home(workspace_id, {"planted": b"by somebody else"})
    other = archive_key(workspace_id, str(uuid.uuid4()))
    await harness.jobs.archive(workspace_id, other, ignore)
    elsewhere = WorkspaceId(str(uuid.uuid4()))
    harness.write_home(elsewhere, HOME)
    stored = await harness.jobs.archive(elsewhere, key, ignore)
    for suffix in ("", META_SUFFIX):
        await harness.write(key + suffix, await harness.read(other + suffix) or b"")
    return stored


@pytest.mark.parametrize("known", ["both", "sha256", "size"])
async def test_an_archive_replaced_together_with_its_meta_is_corrupted(
    harness: JobHarness, workspace_id: WorkspaceId, key: str, known: str
) -> None:
    stored = await exchange(harness, workspace_id, key)
    expected = ExpectedArchive(
        size_bytes=None if known == "sha256" else stored.size_bytes,
        sha256=None if known == "size" else stored.sha256,
    )
    volume = WorkspaceId(str(uuid.uuid4()))
    harness.write_home(volume, HOME)
    failure = await failure_of(harness.jobs.restore(volume, key, ignore, expected))
    assert (type(failure), failure.reason) == (Permanent, ErrorReason.ARCHIVE_CORRUPTED)
    assert "recorded" in failure.message
    assert harness.read_home(volume) == HOME


async def test_an_archive_that_matches_its_record_is_restored(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    harness.write_home(workspace_id, HOME)
    stored = await harness.jobs.archive(workspace_id, key, ignore)
    await harness.jobs.restore(workspace_id, key, ignore, ExpectedArchive(stored.size_bytes, stored.sha256))
    assert harness.read_home(workspace_id) == HOME


async def test_a_store_that_does_not_respond_is_unreachable(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    harness.write_home(workspace_id, HOME)
    failure = await failure_of(harness.cut_off.restore(workspace_id, key, ignore, UNRECORDED))
    assert (type(failure), failure.reason) == (Transient, ErrorReason.UNREACHABLE)
    assert harness.read_home(workspace_id) == HOME


async def test_a_workspace_without_a_volume_cannot_be_archived(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    failure = await failure_of(harness.jobs.archive(workspace_id, key, ignore))
    assert (type(failure), failure.reason) == (Transient, ErrorReason.ACTION_FAILED)
    assert await harness.read(meta_key(key)) is None


async def test_a_second_job_on_the_same_volume_is_refused(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    harness.write_home(workspace_id, HOME)
    with harness.stalled():
        first = await RunningJob(harness.jobs, workspace_id, key).begun()
        failure = await failure_of(harness.jobs.restore(workspace_id, key, ignore, UNRECORDED))
        assert (type(failure), failure.reason) == (Transient, ErrorReason.ACTION_FAILED)
        assert harness.count() == 1
        await first.cancel()


async def test_a_cancelled_job_has_ended_when_its_call_returns(
    harness: JobHarness, workspace_id: WorkspaceId, key: str
) -> None:
    harness.write_home(workspace_id, HOME)
    with harness.stalled():
        job = await RunningJob(harness.jobs, workspace_id, key).begun()
        assert harness.count() == 1
        await job.cancel()
    assert harness.count() == 0
    assert await harness.read(key) is None
    await harness.jobs.archive(workspace_id, key, ignore)
    assert await harness.read(meta_key(key)) is not None
