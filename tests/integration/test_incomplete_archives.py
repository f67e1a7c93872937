"""A meta that arrives in pieces or only in part is never taken for an invalid one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codehub.adapters.s3.archives import S3Archives
from codehub.domain.failures import Transient
from codehub.ports import ArchiveStore
from storage_job.errors import JobError, Reason
from testkit.network_faults import FaultRelay
from tests.buckets import Bucket
from tests.storage_jobs import KEY, META_KEY, archive, restore

IN_A_META = b"sha256:"


@asynccontextmanager
async def slow_connection(endpoint_url: str, *, cut: bool) -> AsyncIterator[str]:
    """Yield a URL at which responses come in small pieces, and end in the middle of a meta if `cut`."""
    async with FaultRelay.to(endpoint_url, slow=True, cut_after=IN_A_META if cut else None) as relay:
        yield relay.rewrite(endpoint_url)


@pytest.fixture
async def home(bucket: Bucket, tmp_path: Path) -> Path:
    """An archived home that is half removed: a second archive would lose the rest."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("kept", "removed"):
        (home / name).write_text(name)
    await archive(bucket, home)
    (home / "removed").unlink()
    return home


async def assert_archive_is_complete(bucket: Bucket, tmp_path: Path) -> None:
    restored = tmp_path / "restored"
    restored.mkdir()
    await restore(bucket, restored)
    assert {each.name for each in restored.iterdir()} == {"kept", "removed"}


async def test_a_job_finds_a_commit_whose_meta_arrives_in_pieces(
    bucket: Bucket, home: Path, tmp_path: Path
) -> None:
    before = await bucket.read(META_KEY)
    async with slow_connection(bucket.server.endpoint_url, cut=False) as url:
        outcome = await archive(bucket, home, endpoint_url=url)
    assert outcome.skipped
    assert await bucket.read(META_KEY) == before
    await assert_archive_is_complete(bucket, tmp_path)


async def test_a_job_that_gets_half_a_meta_changes_nothing(
    bucket: Bucket, home: Path, tmp_path: Path
) -> None:
    before = await bucket.read(META_KEY)
    async with slow_connection(bucket.server.endpoint_url, cut=True) as url:
        with pytest.raises(JobError) as caught:
            await archive(bucket, home, endpoint_url=url)
    assert caught.value.reason is Reason.UNREACHABLE
    assert await bucket.read(META_KEY) == before
    await assert_archive_is_complete(bucket, tmp_path)


@asynccontextmanager
async def control_plane(bucket: Bucket, *, cut: bool) -> AsyncIterator[S3Archives]:
    server = bucket.server
    async with slow_connection(server.endpoint_url, cut=cut) as url:
        store = ArchiveStore(bucket.name, server.access_key, server.secret_key, url)
        async with S3Archives.open(store) as archives:
            yield archives


async def test_the_control_plane_reads_a_meta_that_arrives_in_pieces(bucket: Bucket, home: Path) -> None:
    del home
    async with control_plane(bucket, cut=False) as archives:
        stored = await archives.read_meta(KEY)
    assert stored is not None
    assert f"sha256:{stored.sha256}".encode() in await bucket.read(META_KEY)


async def test_half_a_meta_is_a_transient_failure_of_the_control_plane(bucket: Bucket, home: Path) -> None:
    del home
    async with control_plane(bucket, cut=True) as archives:
        with pytest.raises(Transient):
            await archives.read_meta(KEY)


@pytest.mark.parametrize("cut", [False, True])
async def test_a_restore_continues_where_a_meta_was_cut(cut: bool, bucket: Bucket, home: Path) -> None:
    async with slow_connection(bucket.server.endpoint_url, cut=cut) as url:
        await restore(bucket, home, endpoint_url=url)
    assert {each.name for each in home.iterdir()} == {"kept", "removed"}
