"""Remove a directory tree of any depth, also with read-only directories, which are common in homes."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_NAMES = 10_000


@dataclass
class _Level:
    """A directory on the way down, with the subdirectories in it that are still to be removed."""

    name: str
    subdirectories: list[str] = field(default_factory=list)


def remove_tree(path: Path, on_removed: Callable[[], None]) -> None:
    """Remove a directory, a file or nothing; remove a symlink, never follow it.

    `on_removed` is called for each entry, because a large tree takes long.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    parent = os.open(path.parent, _DIRECTORY)
    try:
        _empty(path.name, parent, on_removed)
    finally:
        os.close(parent)
    path.rmdir()


def _empty(name: str, parent: int, on_removed: Callable[[], None]) -> None:
    """Walk down and up with a single open directory.

    A tree may be too deep for the stack, for a path or for one open file per level. The walk also takes no
    space on the disk, which may be full.
    """
    here = _enter(name, parent)
    levels = [_Level(name)]
    try:
        while True:
            level = levels[-1]
            level.subdirectories = level.subdirectories or _remove_files(here, on_removed)
            if level.subdirectories:
                deeper = _Level(level.subdirectories.pop())
                here = _replace(here, _enter(deeper.name, here))
                levels.append(deeper)
            elif len(levels) > 1:
                here = _replace(here, os.open("..", _DIRECTORY, dir_fd=here))
                os.rmdir(levels.pop().name, dir_fd=here)
                on_removed()
            else:
                return
    finally:
        os.close(here)


def _remove_files(here: int, on_removed: Callable[[], None]) -> list[str]:
    """Remove everything but directories; return the remaining directories, at most _MAX_NAMES of them."""
    directories: list[str] = []
    with os.scandir(here) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=here)
                on_removed()
            elif len(directories) < _MAX_NAMES:
                directories.append(entry.name)
    return directories


def _enter(name: str, parent: int) -> int:
    mode = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, mode | stat.S_IRWXU, dir_fd=parent)
    return os.open(name, _DIRECTORY, dir_fd=parent)


def _replace(old: int, new: int) -> int:
    os.close(old)
    return new
