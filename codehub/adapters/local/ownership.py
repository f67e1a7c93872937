"""Gives every entry of a home to one user, without following symlinks or leaving the home."""

import contextlib
import errno
import logging
import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_SPECIAL = stat.S_ISUID | stat.S_ISGID
_CAPABILITY = "security.capability"
# Only root can set this attribute: the mode of the file, then its capabilities.
_NOTE = "trusted.codehub.adopting"
_MODE_BYTES = 2
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_log = logging.getLogger(__name__)


def give_to(home: Path, uid: int) -> None:
    """Change the owner and group of everything in an unused home. Can be repeated after a crash."""
    names: Counter[int] = Counter()
    links: dict[int, int] = {}
    for entry in _entries(home):
        if entry.status.st_nlink > 1 and not stat.S_ISDIR(entry.status.st_mode):
            names[entry.status.st_ino] += 1
            links[entry.status.st_ino] = entry.status.st_nlink
        else:
            entry.give_to(uid)
    # A file that also has a name outside this home may belong to anybody.
    inside = {inode for inode, count in links.items() if names[inode] == count}
    if outside := len(links) - len(inside):
        _log.warning("%d files in %s have names outside of it, so they keep their owner.", outside, home)
    for entry in _entries(home) if inside else ():
        if entry.status.st_ino in inside:
            entry.give_to(uid)
    os.chown(home, uid, uid, follow_symlinks=False)


class _Entry(NamedTuple):
    name: str
    status: os.stat_result
    directory: int

    def give_to(self, uid: int) -> None:
        if stat.S_ISREG(self.status.st_mode):
            with self._opened() as path:
                self._give_file(path, uid)
        else:
            self._change_owner(uid)

    def _give_file(self, path: str, uid: int) -> None:
        """Keep what the kernel clears when the owner changes; a note on the file survives a crash."""
        cleared = _get_attribute(path, _NOTE) or self._note_what_is_cleared(path, uid)
        self._change_owner(uid)
        if cleared is None:
            return
        os.chmod(path, int.from_bytes(cleared[:_MODE_BYTES]))  # noqa: PTH101
        if capability := cleared[_MODE_BYTES:]:
            os.setxattr(path, _CAPABILITY, capability)
        with contextlib.suppress(OSError):
            os.removexattr(path, _NOTE)

    def _note_what_is_cleared(self, path: str, uid: int) -> bytes | None:
        if self._belongs_to(uid):
            return None
        capability = _get_attribute(path, _CAPABILITY)
        if capability is None and not self.status.st_mode & _SPECIAL:
            return None
        cleared = stat.S_IMODE(self.status.st_mode).to_bytes(_MODE_BYTES) + (capability or b"")
        # A file system without such attributes has no note, which matters only after a crash.
        with contextlib.suppress(OSError):
            os.setxattr(path, _NOTE, cleared)
        return cleared

    def _change_owner(self, uid: int) -> None:
        if not self._belongs_to(uid):
            os.chown(self.name, uid, uid, dir_fd=self.directory, follow_symlinks=False)

    def _belongs_to(self, uid: int) -> bool:
        return (self.status.st_uid, self.status.st_gid) == (uid, uid)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[str]:
        """Yield a path to this very file, even if its name is replaced meanwhile."""
        descriptor = os.open(self.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.directory)
        try:
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)


def _get_attribute(path: str, name: str) -> bytes | None:
    try:
        return os.getxattr(path, name)
    except OSError as error:
        if error.errno in {errno.ENODATA, errno.ENOTSUP}:
            return None
        raise


def _entries(home: Path) -> Iterator[_Entry]:
    """Yield all entries of the home on the same disk, at any depth, with one open directory at a time."""
    current = os.open(home, _DIRECTORY)
    parents: list[tuple[os.stat_result, list[str]]] = []
    try:
        device = os.fstat(current).st_dev
        names = os.listdir(current)  # noqa: PTH208 (a descriptor)
        while names or parents:
            if not names:
                expected, names = parents.pop()
                current = _replace(current, "..")
                if not os.path.samestat(os.fstat(current), expected):
                    raise OSError(f"{home} changed while it was read.")
                continue
            name = names.pop()
            status = os.stat(name, dir_fd=current, follow_symlinks=False)
            if status.st_dev != device:
                continue
            yield _Entry(name, status, current)
            if stat.S_ISDIR(status.st_mode):
                parents.append((os.fstat(current), names))
                current = _replace(current, name)
                names = os.listdir(current)  # noqa: PTH208 (a descriptor)
    finally:
        os.close(current)


def _replace(directory: int, name: str) -> int:
    opened = os.open(name, _DIRECTORY, dir_fd=directory)
    os.close(directory)
    return opened
