"""Old content that cannot be moved or removed gives the right error, and a later restore succeeds."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage_job.errors import JobError, Reason
from storage_job.volume import WORK_NAME
from testkit.trees import describe_tree
from tests.adversarial.outcomes import assert_not_archived, assert_refused, content_of
from tests.adversarial.small_disk import run, small_disk
from tests.buckets import Bucket
from tests.storage_jobs import archive, restore


@pytest.fixture
async def new(bucket: Bucket, tmp_path: Path) -> Path:
    """A home that is archived."""
    home = tmp_path / "new"
    home.mkdir()
    for name in ("a", "new", "z"):
        (home / name).write_text("new")
    await archive(bucket, home)
    return home


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path) as disk:
        volume = disk / "volume"
        for name in ("a", "directory", "z"):
            (volume / name).mkdir(parents=True)
            (volume / name / "old").write_text("old")
        (tmp_path / "outside").write_text("outside")
        (tmp_path / "outside").chmod(0o600)
        (volume / "link").symlink_to(tmp_path / "outside")
        yield volume


async def test_an_immutable_entry_at_the_top_changes_nothing(bucket: Bucket, volume: Path, new: Path) -> None:
    """Regression: entries that had already been moved away were lost."""
    # The last one in the order of this file system, so that everything else is moved before.
    *_, locked = (each for each in volume.iterdir() if not each.is_symlink())
    run("chattr", "+i", str(locked))
    await assert_refused(bucket, volume, Reason.ACTION_FAILED)
    run("chattr", "-i", str(locked))
    await restore(bucket, volume)
    assert content_of(volume) == content_of(new)


async def test_an_append_only_volume_changes_nothing_elsewhere(
    bucket: Bucket, volume: Path, new: Path
) -> None:
    """Regression: the target of a symlink got the permissions that were meant for a directory."""
    run("chattr", "+a", str(volume))
    with pytest.raises(JobError) as caught:
        await restore(bucket, volume)
    run("chattr", "-a", str(volume))
    assert caught.value.reason is Reason.ACTION_FAILED
    assert (volume.parents[1] / "outside").stat().st_mode & 0o777 == 0o600
    assert {entry.name for entry in volume.iterdir()} - {WORK_NAME} == {"a", "directory", "link", "z"}
    await restore(bucket, volume)
    assert content_of(volume) == content_of(new)


async def test_an_immutable_file_in_a_subdirectory_is_reported_and_removed_later(
    bucket: Bucket, volume: Path, new: Path
) -> None:
    """The new home is complete then; only the old one is not yet removed."""
    locked = volume / "directory" / "locked"
    locked.write_text("old")
    run("chattr", "+i", str(locked))
    with pytest.raises(JobError, match="locked") as caught:
        await restore(bucket, volume)
    assert caught.value.reason is Reason.ACTION_FAILED
    assert describe_tree(volume).keys() >= describe_tree(new).keys()
    run("chattr", "-R", "-i", str(volume))
    await restore(bucket, volume)
    assert content_of(volume) == content_of(new)


@pytest.mark.parametrize("mount_point", ["mounted", "directory/with space"])
async def test_a_mount_in_a_volume_is_never_touched(
    bucket: Bucket, volume: Path, new: Path, tmp_path: Path, mount_point: str
) -> None:
    """Regression: its files were archived with the home and removed with the old content."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "precious").write_text("precious")
    (volume / mount_point).mkdir()
    run("mount", "--bind", str(source), str(volume / mount_point))
    try:
        error = await assert_refused(bucket, volume, Reason.ACTION_FAILED)
        assert mount_point in error.message
        await bucket.clear()
        await assert_not_archived(bucket, volume, "mounted at")
        assert (source / "precious").read_text() == "precious"
    finally:
        run("umount", str(volume / mount_point))
    await archive(bucket, volume)
    await restore(bucket, volume)


async def test_open_and_running_files_do_not_prevent_a_restore(
    bucket: Bucket, volume: Path, new: Path
) -> None:
    program = volume / "z" / "sleep"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with (volume / "a" / "old").open() as opened:
        busy = await asyncio.create_subprocess_exec(program, "1000", cwd=volume / "z")
        await restore(bucket, volume)
        assert opened.read() == "old"
        busy.kill()
        await busy.wait()
    assert content_of(volume) == content_of(new)
