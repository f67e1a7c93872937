"""Archives in a real S3, beyond the common contract."""

import uuid
from collections.abc import AsyncIterator

import pytest

from codehub.adapters.s3.archives import S3Archives
from codehub.domain.conditions import ArchiveFact, WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.naming import archive_key, meta_key
from codehub.domain.states import ErrorReason
from codehub.ports import ArchiveStore
from tests.buckets import Bucket
from tests.contracts.test_archives import store_of

KEY = archive_key(WorkspaceId(str(uuid.uuid4())), str(uuid.uuid4()))


@pytest.fixture
async def archives(bucket: Bucket) -> AsyncIterator[S3Archives]:
    async with S3Archives.open(store_of(bucket)) as opened:
        yield opened


async def assert_unreachable(archives: S3Archives) -> None:
    for call in (
        archives.observe(KEY),
        archives.observe(None),
        archives.read_meta(KEY),
        anext(archives.list_all()),
    ):
        with pytest.raises(Transient) as caught:
            await call
        assert caught.value.reason is ErrorReason.UNREACHABLE


async def test_a_missing_bucket_is_an_outage_and_not_an_absence(bucket: Bucket) -> None:
    async with S3Archives.open(store_of(bucket, bucket="never-made")) as archives:
        await assert_unreachable(archives)


async def test_wrong_credentials_are_an_outage_and_not_an_absence(bucket: Bucket) -> None:
    async with S3Archives.open(store_of(bucket, secret_key="wrong")) as archives:  # noqa: S106
        await assert_unreachable(archives)


async def test_a_bucket_is_created_once(bucket: Bucket) -> None:
    async with S3Archives.open(store_of(bucket, bucket=f"made-{uuid.uuid4().hex}")) as archives:
        await archives.ensure_bucket()
        await archives.ensure_bucket()
        assert await archives.observe(None) is ArchiveFact.ABSENT


async def test_a_listing_reads_all_pages(
    archives: S3Archives, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [f"archives/{number}" for number in range(5)]
    for key in keys:
        await bucket.write(key, b"x")
    monkeypatch.setattr("codehub.adapters.s3.archives.PAGE_SIZE", 2)
    assert [each.key async for each in archives.list_all()] == keys


async def test_an_invalid_meta_is_a_corrupted_archive(archives: S3Archives, bucket: Bucket) -> None:
    await bucket.write(KEY, b"content")
    await bucket.write(meta_key(KEY), b"md5:0\n")
    with pytest.raises(Permanent) as caught:
        await archives.read_meta(KEY)
    assert caught.value.reason is ErrorReason.ARCHIVE_CORRUPTED


def test_the_secret_is_never_printed() -> None:
    store = ArchiveStore("bucket", "id", "very-secret")
    assert "very-secret" not in repr(store)
