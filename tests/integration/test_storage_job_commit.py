"""The meta commits an archive: without it, the archive does not count."""

from pathlib import Path

import pytest

from storage_job.errors import JobError, Reason
from tests.buckets import Bucket
from tests.storage_jobs import KEY, META_KEY, archive, restore


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").write_text("first")
    return tmp_path / "home"


async def test_a_committed_archive_is_not_uploaded_again(bucket: Bucket, home: Path) -> None:
    first = await archive(bucket, home)
    content = await bucket.read(KEY)
    (home / "file").write_text("changed meanwhile")
    second = await archive(bucket, home)
    assert (second.skipped, second.sha256, second.bytes) == (True, first.sha256, first.bytes)
    assert await bucket.read(KEY) == content


async def test_the_meta_describes_the_stored_archive(bucket: Bucket, home: Path) -> None:
    outcome = await archive(bucket, home)
    lines = (await bucket.read(META_KEY)).decode().splitlines()
    assert lines == [
        f"sha256:{outcome.sha256}",
        f"size:{len(await bucket.read(KEY))}",
        f"uncompressed:{outcome.uncompressed}",
        "entries:2",
    ]
    assert sorted(await bucket.keys()) == [KEY, META_KEY]


@pytest.mark.parametrize(
    "leftover", ["archive only", "meta only", "unreadable meta", "meta of another archive"]
)
async def test_an_uncommitted_archive_is_uploaded_again(
    bucket: Bucket, home: Path, tmp_path: Path, leftover: str
) -> None:
    await archive(bucket, home)
    if leftover == "archive only":
        await bucket.remove(META_KEY)
    elif leftover == "meta only":
        await bucket.remove(KEY)
    elif leftover == "unreadable meta":
        await bucket.write(META_KEY, b"nonsense")
    else:
        await bucket.write(KEY, b"short")
    (home / "file").write_text("second")
    assert not (await archive(bucket, home)).skipped
    (tmp_path / "volume").mkdir()
    await restore(bucket, tmp_path / "volume")
    assert (tmp_path / "volume" / "file").read_text() == "second"


@pytest.mark.parametrize("missing", [KEY, META_KEY])
async def test_restoring_a_missing_archive_is_lost_data(bucket: Bucket, home: Path, missing: str) -> None:
    await archive(bucket, home)
    await bucket.remove(missing)
    with pytest.raises(JobError) as caught:
        await restore(bucket, home)
    assert caught.value.reason is Reason.DATA_LOST
    assert (home / "file").read_text() == "first"


WRONG_SECRET = {"secret_key": "wrong"}
NO_SERVER = {"endpoint_url": "http://127.0.0.1:9"}
NO_BUCKET = {"archive_url": "s3://absent/home.tar.zst"}


@pytest.mark.parametrize("fault", [WRONG_SECRET, NO_SERVER, NO_BUCKET])
async def test_a_store_that_cannot_be_read_is_not_lost_data(
    bucket: Bucket, home: Path, fault: dict[str, str]
) -> None:
    with pytest.raises(JobError) as caught:
        await restore(bucket, home, **fault)
    assert caught.value.reason is Reason.UNREACHABLE
    assert (home / "file").read_text() == "first"


@pytest.mark.parametrize("fault", [WRONG_SECRET, NO_BUCKET])
async def test_a_store_that_cannot_be_written_is_unreachable(
    bucket: Bucket, home: Path, fault: dict[str, str]
) -> None:
    with pytest.raises(JobError) as caught:
        await archive(bucket, home, **fault)
    assert caught.value.reason is Reason.UNREACHABLE
