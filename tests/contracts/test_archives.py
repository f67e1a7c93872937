"""The contract of `Archives`, for every archive store."""

import hashlib
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import pytest

from codehub.adapters.s3.archives import S3Archives
from codehub.domain.conditions import ArchiveFact, Resource, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import archive_key, meta_key
from codehub.domain.states import ErrorReason
from codehub.ports import Archives, ArchiveStore, StoredArchive
from testkit.fakes import FakeArchives, FakeObject, FakeWorld
from tests.buckets import Bucket

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

CONTENT = b"a tar, as far as the store is concerned"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
META = f"sha256:{DIGEST}\nsize:{len(CONTENT)}\n".encode()


class ArchiveHarness(Protocol):
    @property
    def archives(self) -> Archives: ...

    async def put(self, key: str, content: bytes) -> None: ...

    async def keys(self) -> list[str]: ...

    async def begin_upload(self, key: str) -> None: ...

    async def count_uploads(self) -> int: ...

    def down(self) -> "AbstractAsyncContextManager[Archives]":
        """Return the same store as an unreachable one."""


class FakeHarness:
    def __init__(self) -> None:
        self.world = FakeWorld(now=datetime.now(UTC))
        self.archives = FakeArchives(self.world)

    async def put(self, key: str, content: bytes) -> None:
        self.world.objects[key] = FakeObject(content, self.world.now)

    async def keys(self) -> list[str]:
        return sorted(self.world.objects)

    async def begin_upload(self, key: str) -> None:
        self.world.uploads[key] = self.world.now

    async def count_uploads(self) -> int:
        return len(self.world.uploads)

    @asynccontextmanager
    async def down(self) -> AsyncIterator[Archives]:
        self.world.down.add(Resource.ARCHIVE)
        yield self.archives


class S3Harness:
    def __init__(self, archives: S3Archives, bucket: Bucket) -> None:
        self.archives = archives
        self._bucket = bucket

    async def put(self, key: str, content: bytes) -> None:
        await self._bucket.write(key, content)

    async def keys(self) -> list[str]:
        return await self._bucket.keys()

    async def begin_upload(self, key: str) -> None:
        await self._bucket.client.create_multipart_upload(Bucket=self._bucket.name, Key=key)

    async def count_uploads(self) -> int:
        return len(await self._bucket.unfinished_uploads())

    @asynccontextmanager
    async def down(self) -> AsyncIterator[Archives]:
        # No server listens on port 1 of the loopback interface.
        async with S3Archives.open(store_of(self._bucket, endpoint_url="http://127.0.0.1:1")) as archives:
            yield archives


def store_of(bucket: Bucket, /, **changes: str) -> ArchiveStore:
    values = {
        "bucket": bucket.name,
        "access_key": bucket.server.access_key,
        "secret_key": bucket.server.secret_key,
        "endpoint_url": bucket.server.endpoint_url,
    }
    return ArchiveStore(**values | changes)


@pytest.fixture(params=["fake", "s3"])
async def harness(request: pytest.FixtureRequest, bucket: Bucket) -> AsyncIterator[ArchiveHarness]:
    if request.param == "fake":
        yield FakeHarness()
        return
    async with S3Archives.open(store_of(bucket)) as archives:
        yield S3Harness(archives, bucket)


@pytest.fixture
def key() -> str:
    return archive_key(WorkspaceId(str(uuid.uuid4())), str(uuid.uuid4()))


async def test_both_objects_make_an_archive(harness: ArchiveHarness, key: str) -> None:
    await harness.put(key, CONTENT)
    await harness.put(meta_key(key), META)
    assert await harness.archives.observe(key) is ArchiveFact.PRESENT
    assert await harness.archives.read_meta(key) == StoredArchive(key, len(CONTENT), DIGEST)


async def test_without_its_meta_an_archive_is_not_committed(harness: ArchiveHarness, key: str) -> None:
    await harness.put(key, CONTENT)
    assert await harness.archives.observe(key) is ArchiveFact.ABSENT
    assert await harness.archives.read_meta(key) is None


async def test_a_meta_without_its_archive_is_not_an_archive(harness: ArchiveHarness, key: str) -> None:
    await harness.put(meta_key(key), META)
    assert await harness.archives.observe(key) is ArchiveFact.ABSENT
    assert await harness.archives.read_meta(key) is None


async def test_an_archive_that_was_never_stored_is_absent(harness: ArchiveHarness, key: str) -> None:
    assert await harness.archives.observe(key) is ArchiveFact.ABSENT
    assert await harness.archives.observe(None) is ArchiveFact.ABSENT
    assert await harness.archives.read_meta(key) is None
    assert [each async for each in harness.archives.list_all()] == []


async def test_the_list_has_every_object_below_the_root(harness: ArchiveHarness, key: str) -> None:
    await harness.put(key, CONTENT)
    await harness.put(meta_key(key), META)
    await harness.put("somebody-elses", b"x")
    listed = {each.key: each async for each in harness.archives.list_all()}
    assert listed.keys() == {key, meta_key(key)}
    assert listed[key].size_bytes == len(CONTENT)
    assert abs(listed[key].modified_at - datetime.now(UTC)) < timedelta(minutes=1)


async def test_a_removed_archive_is_gone_with_its_meta(harness: ArchiveHarness, key: str) -> None:
    await harness.put(key, CONTENT)
    await harness.put(meta_key(key), META)
    await harness.put("somebody-elses", b"x")
    await harness.archives.remove(key)
    assert await harness.keys() == ["somebody-elses"]


async def test_removing_a_missing_archive_succeeds(harness: ArchiveHarness, key: str) -> None:
    await harness.archives.remove(key)
    await harness.put(key, CONTENT)
    await harness.archives.remove(key)
    await harness.archives.remove(key)
    assert await harness.archives.observe(key) is ArchiveFact.ABSENT


async def test_only_stale_uploads_are_aborted(harness: ArchiveHarness, key: str) -> None:
    await harness.begin_upload(key)
    now = datetime.now(UTC)
    assert await harness.archives.abort_stale_uploads(now - timedelta(minutes=5)) == 0
    assert await harness.count_uploads() == 1
    assert await harness.archives.abort_stale_uploads(now + timedelta(minutes=5)) == 1
    assert await harness.count_uploads() == 0
    assert await harness.archives.abort_stale_uploads(now + timedelta(minutes=5)) == 0


async def test_an_outage_is_not_an_absence(harness: ArchiveHarness, key: str) -> None:
    async with harness.down() as archives:
        calls = (
            archives.observe(key),
            archives.observe(None),
            archives.read_meta(key),
            archives.remove(key),
            archives.abort_stale_uploads(datetime.now(UTC)),
            anext(aiter(archives.list_all())),
        )
        for call in calls:
            with pytest.raises(Transient) as caught:
                await call
            assert caught.value.reason is ErrorReason.UNREACHABLE
