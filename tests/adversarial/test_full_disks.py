"""On a full disk the old content stays, and with more space the restore succeeds."""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage_job.errors import Reason
from tests.adversarial.outcomes import assert_refused, content_of
from tests.adversarial.small_disk import DISK_MIB, MIB, fill, free_bytes, small_disk
from tests.buckets import Bucket
from tests.storage_jobs import META_KEY, archive, restore, store_archive
from tests.tars import member, tar_of, zstd

HOME_BYTES = 8 * MIB


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path) as disk:
        volume = disk / "volume"
        volume.mkdir()
        (volume / "old").write_text("old")
        yield volume


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").write_bytes(os.urandom(HOME_BYTES))
    return tmp_path / "home"


@pytest.mark.parametrize("leave", [0, HOME_BYTES // 2])
async def test_a_home_too_large_for_the_disk_is_restored_once_there_is_space(
    bucket: Bucket, home: Path, volume: Path, leave: int
) -> None:
    await archive(bucket, home)
    fill(volume.parent / "ballast", leave)
    error = await assert_refused(bucket, volume, Reason.ACTION_FAILED)
    assert "space" in error.message
    (volume.parent / "ballast").unlink()
    await restore(bucket, volume)
    assert content_of(volume) == content_of(home)


async def test_a_disk_that_fills_up_while_extracting_loses_nothing(bucket: Bucket, volume: Path) -> None:
    # A directory takes a block on this disk but half a block in a tar, so the recorded size seems to fit.
    content = tar_of(member(f"directory-{number}", tarfile.DIRTYPE) for number in range(3000))
    await store_archive(bucket, zstd(content))
    await bucket.write(META_KEY, await bucket.read(META_KEY) + b"uncompressed:%d\n" % len(content))
    fill(volume.parent / "ballast", len(content) + MIB // 4)
    error = await assert_refused(bucket, volume, Reason.ACTION_FAILED)
    assert "full" in error.message
    (volume.parent / "ballast").unlink()
    await restore(bucket, volume)
    assert len(list(volume.iterdir())) == 3000


async def test_a_disk_without_inodes_loses_nothing(bucket: Bucket, volume: Path) -> None:
    count = os.statvfs(volume).f_favail + 10
    await store_archive(bucket, zstd(tar_of(member(f"empty-{number}") for number in range(count))))
    error = await assert_refused(bucket, volume, Reason.ACTION_FAILED)
    assert "full" in error.message


async def test_archiving_needs_no_space(bucket: Bucket, volume: Path, tmp_path: Path) -> None:
    fill(volume / "everything")
    assert free_bytes(volume) < 4096
    await archive(bucket, volume)
    (tmp_path / "elsewhere").mkdir()
    await restore(bucket, tmp_path / "elsewhere")
    assert content_of(tmp_path / "elsewhere") == content_of(volume)


async def test_an_archive_of_unknown_size_never_takes_the_whole_disk(bucket: Bucket, volume: Path) -> None:
    """Regression: such a bomb filled the disk, which other homes may share."""
    members = [member(f"zeros-{number}", content=bytes(MIB)) for number in range(2 * DISK_MIB)]
    await store_archive(bucket, zstd(tar_of(members)))
    error = await assert_refused(bucket, volume, Reason.ACTION_FAILED)
    assert "available on the volume" in error.message
