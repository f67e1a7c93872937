"""Remove a tree whatever its permissions and depth: read-only directories are ordinary in homes."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMES_AT_ONCE = 10_000


@dataclass
class _Level:
    """A directory on the way down, and those inside of it that are known and still there."""

    name: str
    waiting: list[str] = field(default_factory=list)


def remove_tree(path: Path, removed: Callable[[], None]) -> None:
    """Remove what is there, be it a directory, a file or nothing; a symlink is removed, never followed.

    `removed` is called for each entry: a large tree takes long.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    above = os.open(path.parent, _DIRECTORY)
    try:
        _empty(path.name, above, removed)
    finally:
        os.close(above)
    path.rmdir()


def _empty(name: str, above: int, removed: Callable[[], None]) -> None:
    """Go down and up with one directory open: trees may be deeper than the stack, paths or open files can be.

    It takes no room on the disk either, which may be full.
    """
    here = _enter(name, above)
    levels = [_Level(name)]
    try:
        while True:
            level = levels[-1]
            level.waiting = level.waiting or _remove_files(here, removed)
            if level.waiting:
                deeper = _Level(level.waiting.pop())
                here = _instead_of(here, _enter(deeper.name, here))
                levels.append(deeper)
            elif len(levels) > 1:
                here = _instead_of(here, os.open("..", _DIRECTORY, dir_fd=here))
                os.rmdir(levels.pop().name, dir_fd=here)
                removed()
            else:
                return
    finally:
        os.close(here)


def _remove_files(here: int, removed: Callable[[], None]) -> list[str]:
    """The directories that are left, or as many of them as fit well into memory."""
    directories: list[str] = []
    with os.scandir(here) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=here)
                removed()
            elif len(directories) < _NAMES_AT_ONCE:
                directories.append(entry.name)
    return directories


def _enter(name: str, above: int) -> int:
    mode = stat.S_IMODE(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, mode | stat.S_IRWXU, dir_fd=above)
    return os.open(name, _DIRECTORY, dir_fd=above)


def _instead_of(old: int, new: int) -> int:
    os.close(old)
    return new
