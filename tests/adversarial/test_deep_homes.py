"""Very deep homes: one that could not be restored is not archived."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage_job.errors import Reason
from storage_job.volume import WORK_NAME
from tests.adversarial.deep_trees import depth_of, make_deep, removed_at_the_end
from tests.adversarial.outcomes import assert_not_archived, assert_refused
from tests.buckets import Bucket
from tests.storage_jobs import archive, restore, store_archive
from tests.tars import tar_with_gnu_tar, zstd


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with removed_at_the_end(tmp_path / "home"):
        yield tmp_path / "home"


@pytest.fixture
def volume(volume: Path) -> Iterator[Path]:
    with removed_at_the_end(volume):
        yield volume


async def test_a_home_of_twelve_hundred_levels_can_be_restored_repeatedly(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    make_deep(home, "d", 1200)
    await archive(bucket, home)
    await restore(bucket, volume)
    # Now the old content is as deep, and must be removed.
    await restore(bucket, volume)
    assert depth_of(volume, "d") == 1200
    assert not (volume / WORK_NAME).exists()


async def test_old_content_deeper_than_any_path_is_removed(bucket: Bucket, home: Path, volume: Path) -> None:
    home.mkdir()
    (home / "new").write_text("new")
    await archive(bucket, home)
    make_deep(volume, "d", 2500)
    await restore(bucket, volume)
    assert [entry.name for entry in volume.iterdir()] == ["new"]


async def test_a_home_too_deep_to_restore_is_not_archived(bucket: Bucket, home: Path) -> None:
    """Regression: it was archived and its volume removed, although no restore could succeed."""
    make_deep(home, "n" * 250, 20)
    await assert_not_archived(bucket, home, "path longer than 4095 bytes")
    assert depth_of(home, "n" * 250) == 20


async def test_an_archive_with_paths_too_long_for_the_kernel_is_refused(
    bucket: Bucket, home: Path, volume: Path
) -> None:
    make_deep(home, "n" * 250, 20)
    await store_archive(bucket, zstd(tar_with_gnu_tar(home, "--format=posix", ".")))
    await assert_refused(bucket, volume, Reason.ARCHIVE_CORRUPTED)


@pytest.mark.parametrize(("last", "fits"), [(253, True), (254, False)])
async def test_the_longest_path_is_that_of_the_kernel(
    bucket: Bucket, home: Path, volume: Path, last: int, fits: bool
) -> None:
    # "./", fifteen times 255 and a slash, and a rest that makes 4095 or 4096.
    make_deep(home, "n" * 255, 15, innermost="x" * last)
    if fits:
        await archive(bucket, home)
        await restore(bucket, volume)
        assert depth_of(volume, "n" * 255, innermost="x" * last) == 15
    else:
        await assert_not_archived(bucket, home, "path longer than 4095 bytes")
