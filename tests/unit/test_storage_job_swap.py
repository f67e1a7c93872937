"""A swap replaces the content of a volume by the staged home, also after an interrupted swap."""

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage_job.swap import WorkDirectory, directory_moves, entry_moves, swap
from storage_job.volume import WORK_NAME
from testkit.needs import need_root
from testkit.trees import describe_tree, make_rich_home

OLD = ("old-file", "old-directory", "both")
NEW = ("new-file", "new-directory", "both", "another")


def fill(root: Path, names: tuple[str, ...], content: str) -> None:
    root.mkdir(exist_ok=True)
    for name in names:
        if name.endswith("directory"):
            (root / name).mkdir()
            (root / name / "nested").write_text(content)
        else:
            (root / name).write_text(content)


def contents(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def stage(volume: Path) -> WorkDirectory:
    work = WorkDirectory(volume)
    work.create()
    fill(work.staging, NEW, "new")
    return work


@pytest.mark.parametrize("completed", range(len(OLD) + len(NEW) + 1))
def test_a_swap_interrupted_after_any_move_is_repaired_by_the_next(tmp_path: Path, completed: int) -> None:
    volume = tmp_path / "volume"
    fill(volume, OLD, "old")
    planned = itertools.chain.from_iterable(entry_moves(*each) for each in directory_moves(stage(volume)))
    for source, target in itertools.islice(planned, completed):
        source.rename(target)
    swap(stage(volume), has_root=True)
    fill(tmp_path / "expected", NEW, "new")
    assert contents(volume) == contents(tmp_path / "expected")
    assert not (volume / WORK_NAME).exists()


def test_old_entries_are_counted_as_they_are_removed(tmp_path: Path) -> None:
    """Removing millions of files takes long, and the job must not look stuck."""
    volume = tmp_path / "volume"
    fill(volume, OLD, "old")
    work = stage(volume)
    swap(work, has_root=True)
    nested, emptied = 1, len(("staging", "trash"))
    assert work.removed == len(OLD) + nested + emptied


def test_an_archived_entry_with_the_name_of_the_work_directory_is_dropped(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "volume")
    work.data_dir.mkdir()
    work.create()
    fill(work.staging, (WORK_NAME, "kept"), "new")
    swap(work, has_root=True)
    assert contents(work.data_dir) == {"kept": "new"}


@pytest.mark.parametrize("leftover", ["file", "symlink", "directory"])
def test_anything_with_the_name_of_the_work_directory_is_removed(tmp_path: Path, leftover: str) -> None:
    outside = tmp_path / "outside"
    fill(outside, ("file",), "outside")
    work = WorkDirectory(tmp_path / "volume")
    work.data_dir.mkdir()
    if leftover == "file":
        work.path.write_text("in the way")
    elif leftover == "symlink":
        work.path.symlink_to(outside)
    else:
        shutil.copytree(outside, work.path)
    work.create()
    assert contents(outside) == {"file": "outside"}
    assert list(work.staging.iterdir()) == []


@contextmanager
def as_user(user: int) -> Iterator[None]:
    os.setegid(user)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def test_an_unprivileged_user_replaces_read_only_directories(tmp_path: Path) -> None:
    need_root()
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(0o755)
    volume = tmp_path / "volume"
    volume.mkdir()
    os.chown(volume, 1000, 1000)
    with as_user(1000):
        for _ in range(2):
            work = WorkDirectory(volume)
            work.create()
            fill(work.staging, NEW, "new")
            (work.staging / "new-directory").chmod(0o555)
            swap(work, has_root=False)
    assert contents(volume).keys() == {*NEW, "new-directory/nested"} - {"new-directory"}
    assert (volume / "new-directory").stat().st_mode & 0o777 == 0o555


def test_a_staged_home_keeps_all_attributes(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "volume")
    work.data_dir.mkdir()
    work.create()
    make_rich_home(work.staging)
    before = describe_tree(work.staging)
    swap(work, has_root=True)
    assert describe_tree(work.data_dir) == before
