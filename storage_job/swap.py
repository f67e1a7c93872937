"""Replace the content of a volume by a staged home with top-level renames; a crash in between is safe."""

import contextlib
import os
import stat
from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

from storage_job.remove_tree import remove_tree
from storage_job.volume import WORK_NAME, foreign_names
from storage_job.writeback import sync_file_system

_DEFAULT_ACL = "system.posix_acl_default"
_MAX_NAMES = 50_000

# All entries of the first directory move into the second.
DirectoryMove = tuple[Path, Path]


@dataclass
class WorkDirectory:
    """The job's own directory in the volume; whatever a crashed run left in it can be removed."""

    data_dir: Path
    # Number of entries removed so far.
    removed: int = 0

    @property
    def path(self) -> Path:
        return self.data_dir / WORK_NAME

    @property
    def staging(self) -> Path:
        return self.path / "staging"

    @property
    def trash(self) -> Path:
        return self.path / "trash"

    def create(self) -> None:
        self.remove()
        self.path.mkdir()
        # Otherwise everything extracted here would inherit the volume's default ACL and setgid bit.
        with contextlib.suppress(OSError):
            os.removexattr(self.path, _DEFAULT_ACL)
        self.path.chmod(0o700)
        for directory in (self.staging, self.trash):
            directory.mkdir(mode=0o700)

    def remove(self) -> None:
        remove_tree(self.path, self._count)

    def _count(self) -> None:
        self.removed += 1


def swap(work: WorkDirectory, has_root: bool) -> None:
    """Replace the volume's content by the staged home. If interrupted, start over with the extraction."""
    # Read them before the moves, which change the times of the directories.
    root = RootAttributes.of(work.staging)
    # Remove the old content only when the new one would survive a power failure.
    sync_file_system(work.data_dir)
    _exchange(work)
    work.remove()
    if has_root:
        root.apply_to(work.data_dir)
    sync_file_system(work.data_dir)


def _exchange(work: WorkDirectory) -> None:
    """Move the old entries away and the new ones in; undo everything if one cannot be moved."""
    # An archived entry with one of these names stays in staging and is removed with it.
    kept = {WORK_NAME, *foreign_names(work.data_dir)}
    done: list[DirectoryMove] = []
    try:
        for move in directory_moves(work):
            done.insert(0, move)
            _move_all(entry_moves(*move, kept))
    except OSError:
        for source, target in done:
            _move_all(entry_moves(target, source, kept))
        raise


def directory_moves(work: WorkDirectory) -> tuple[DirectoryMove, DirectoryMove]:
    """Return the moves in an order in which no name exists twice."""
    return (work.data_dir, work.trash), (work.staging, work.data_dir)


def entry_moves(
    directory: Path, target: Path, kept: Set[str] = frozenset({WORK_NAME})
) -> Iterator[tuple[Path, Path]]:
    """Yield what to rename to what, in batches, so that a million names are never in memory at once."""
    while names := _next_names(directory, kept):
        for name in names:
            yield directory / name, target / name


def _next_names(directory: Path, kept: Set[str]) -> list[str]:
    with os.scandir(directory) as entries:
        return list(islice((entry.name for entry in entries if entry.name not in kept), _MAX_NAMES))


def _move_all(moves: Iterator[tuple[Path, Path]]) -> None:
    for source, target in moves:
        _move(source, target)


def _move(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except PermissionError:
        status = source.lstat()
        if not stat.S_ISDIR(status.st_mode):
            # Never chmod a symlink: that would change its target, which may be anywhere.
            raise
        # Moving a directory rewrites its "..", which needs write permission unless the user is root.
        mode = stat.S_IMODE(status.st_mode)
        source.chmod(mode | stat.S_IRWXU)
        try:
            source.rename(target)
        except OSError:
            source.chmod(mode)
            raise
        target.chmod(mode)


@dataclass(frozen=True)
class RootAttributes:
    """Attributes of a home's root directory, which no rename can carry over to a mount point."""

    status: os.stat_result
    extended: dict[str, bytes]

    @classmethod
    def of(cls, path: Path) -> Self:
        return cls(path.stat(), _extended_attributes(path))

    def apply_to(self, path: Path) -> None:
        """Apply them, unless the root belongs to another user: then its attributes are the volume's own."""
        if os.geteuid() not in (0, path.stat().st_uid):
            return
        if os.geteuid() == 0:
            os.chown(path, self.status.st_uid, self.status.st_gid)
        for name in _extended_attributes(path).keys() - self.extended.keys():
            os.removexattr(path, name)
        for name, value in self.extended.items():
            os.setxattr(path, name, value)
        path.chmod(stat.S_IMODE(self.status.st_mode))
        os.utime(path, ns=(self.status.st_atime_ns, self.status.st_mtime_ns))


def _extended_attributes(path: Path) -> dict[str, bytes]:
    # Labels of the kernel's security modules belong to the mount, not to the archive.
    names = (name for name in os.listxattr(path) if not name.startswith("security."))
    return {name: os.getxattr(path, name) for name in names}
