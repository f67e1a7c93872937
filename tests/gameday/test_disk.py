"""The small disk can be full, free, swapped and unmounted."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gameday.stage.disk import SmallDisk, mounted_disk
from testkit.needs import do_without_mounts


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with mounted_disk(tmp_path / "disk.img", tmp_path / "homes") as mounted:
        if mounted is None:
            do_without_mounts()
        yield mounted


def test_a_full_disk_accepts_no_file_or_directory_and_keeps_its_content(disk: SmallDisk) -> None:
    kept = disk.path / "kept"
    kept.write_bytes(b"kept")
    with disk.full():
        assert disk.is_full()
        with pytest.raises(OSError, match="No space") as caught:
            (disk.path / "new").write_bytes(os.urandom(100_000))
        assert caught.value.errno == errno.ENOSPC
        with pytest.raises(OSError, match="No space"):
            (disk.path / "directory").mkdir()
        assert kept.read_bytes() == b"kept"
    assert not disk.is_full()
    (disk.path / "new").write_bytes(os.urandom(100_000))


def test_the_ballast_uses_no_space_on_the_real_disk(disk: SmallDisk) -> None:
    image = disk.path.parent / "disk.img"
    before = image.stat().st_blocks
    with disk.full():
        os.sync()
        assert image.stat().st_blocks - before < 100_000


def test_a_cancelled_fault_leaves_the_disk_as_it_was(disk: SmallDisk) -> None:
    with pytest.raises(KeyboardInterrupt), disk.full():
        raise KeyboardInterrupt
    assert not disk.is_full()
    with pytest.raises(KeyboardInterrupt), disk.swapped():
        raise KeyboardInterrupt
    assert not disk.is_swapped()


def test_a_swapped_disk_is_empty_and_the_original_comes_back(disk: SmallDisk) -> None:
    kept = disk.path / "kept"
    kept.write_bytes(b"kept")
    with disk.swapped():
        assert disk.is_swapped()
        assert not list(disk.path.iterdir())
        (disk.path / "elsewhere").write_bytes(b"elsewhere")
    assert not disk.is_swapped()
    assert [each.name for each in disk.path.iterdir()] == ["kept"]
    assert kept.read_bytes() == b"kept"


def test_nothing_stays_mounted(tmp_path: Path) -> None:
    homes = tmp_path / "homes"
    with mounted_disk(tmp_path / "disk.img", homes) as mounted:
        assert homes.is_mount() == (mounted is not None)
    assert not homes.is_mount()


def test_there_is_no_disk_where_it_cannot_be_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with mounted_disk(tmp_path / "disk.img", tmp_path / "homes") as mounted:
        assert mounted is None
    assert not (tmp_path / "disk.img").exists()
