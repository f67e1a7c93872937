"""Small archives that extract to enormous sizes are refused without filling disk or memory."""

import tarfile
from pathlib import Path

import pytest

from storage_job.errors import Reason
from tests.adversarial.measured_job import measured_job
from tests.adversarial.outcomes import assert_refused
from tests.buckets import Bucket
from tests.storage_jobs import META_KEY, archive, restore, store_archive
from tests.tars import member, tar_of, zstd

TERABYTE = 10**12
GIBIBYTE = 2**30
JOB_BYTES = 200 * 1024 * 1024


def header_of(size: int) -> bytes:
    """Return the header of a file of this size."""
    info = tarfile.TarInfo("zeros")
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def zeros(gibibytes: int) -> bytes:
    """Repeat one compressed frame, because consecutive frames are one stream."""
    return zstd(bytes(GIBIBYTE // 4)) * (4 * gibibytes)


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """Two megabytes that extract to 64 GiB of a file of 4 TB."""
    content = zstd(header_of(4 * TERABYTE)) + zeros(64)
    assert len(content) < 3 * 1024 * 1024
    return content


async def test_a_file_of_terabytes_is_refused_by_its_header(
    bucket: Bucket, volume: Path, bomb: bytes
) -> None:
    await store_archive(bucket, bomb)
    error = await assert_refused(bucket, volume, Reason.ACTION_FAILED)
    assert "available on the volume" in error.message


@pytest.mark.parametrize("limited", ["by the meta", "by the request"])
async def test_a_file_of_terabytes_exceeds_the_limit(
    bucket: Bucket, volume: Path, bomb: bytes, limited: str
) -> None:
    await store_archive(bucket, bomb)
    if limited == "by the meta":
        await bucket.write(META_KEY, await bucket.read(META_KEY) + b"uncompressed:1000000\n")
    limit = {} if limited == "by the meta" else {"max_bytes": 1_000_000}
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED, **limit)


async def test_many_zeros_are_refused_at_the_limit(bucket: Bucket, volume: Path) -> None:
    many = [member(f"{number}", content=bytes(10_000)) for number in range(1000)]
    await store_archive(bucket, zstd(tar_of(many)))
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED, max_bytes=1_000_000)


async def test_zeros_after_the_end_take_no_memory(bucket: Bucket, volume: Path) -> None:
    await store_archive(bucket, zstd(tar_of([member("file")])) + zeros(1))
    job = await measured_job(bucket, "restore", volume)
    assert job.peak_bytes < JOB_BYTES


async def test_a_sparse_file_of_a_terabyte_is_restored_as_a_hole(
    bucket: Bucket, volume: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    with (tmp_path / "home" / "hole").open("wb") as file:
        file.truncate(TERABYTE)
    await archive(bucket, tmp_path / "home")
    await restore(bucket, volume)
    status = (volume / "hole").stat()
    assert (status.st_size, status.st_blocks) == (TERABYTE, 0)


async def test_a_window_larger_than_memory_is_refused(bucket: Bucket, volume: Path) -> None:
    # The header of the frame requests a window of 2 GiB (exponent 31 - 10), which would be allocated.
    window = bytes([(31 - 10) << 3])
    await store_archive(bucket, b"\x28\xb5\x2f\xfd" + b"\x00" + window + zstd(bytes(1000))[6:])
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)
