"""Make a volume equal to a staged home by top-level renames; a crash between any two of them is safe."""

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from storage_job.remove_tree import remove_tree
from storage_job.root_attributes import RootAttributes
from storage_job.volume import WORK_NAME

_libc = ctypes.CDLL(None, use_errno=True)
_DEFAULT_ACL = "system.posix_acl_default"
_NAMES_AT_ONCE = 50_000

# All entries of the first directory go into the second.
Stage = tuple[Path, Path]


@dataclass
class WorkDirectory:
    """The job's own place inside the volume. What a crashed run left in it is worth nothing."""

    data_dir: Path
    # Entries so far.
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
        # A volume with a default ACL or the setgid bit would hand these down to everything that is extracted.
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
    """Replace the volume's content by the staged one. Run again from extraction on if it was interrupted."""
    # Before the moves, which change the times of the directories that they touch.
    root = RootAttributes.of(work.staging)
    # The old content goes only once the new one would survive a power cut.
    synchronize(work.data_dir)
    _exchange(work)
    work.remove()
    if has_root:
        root.apply_to(work.data_dir)
    synchronize(work.data_dir)


def _exchange(work: WorkDirectory) -> None:
    """Old entries out of the way, then new ones in; all of it, or nothing if one cannot be moved."""
    done: list[Stage] = []
    try:
        for stage in stages(work):
            done.insert(0, stage)
            _move_all(moves(*stage))
    except OSError:
        for source, target in done:
            _move_all(moves(target, source))
        raise


def stages(work: WorkDirectory) -> tuple[Stage, Stage]:
    """In this order, so that no name is ever there twice."""
    return (work.data_dir, work.trash), (work.staging, work.data_dir)


def moves(directory: Path, target: Path) -> Iterator[tuple[Path, Path]]:
    """What to rename to what; asked again and again, so that a million names are never in memory at once."""
    while names := _some_names(directory):
        for name in names:
            yield directory / name, target / name


def _some_names(directory: Path) -> list[str]:
    with os.scandir(directory) as entries:
        # The archive's own entry of this name, if any, stays in staging and goes with it.
        return list(islice((entry.name for entry in entries if entry.name != WORK_NAME), _NAMES_AT_ONCE))


def _move_all(planned: Iterator[tuple[Path, Path]]) -> None:
    for source, target in planned:
        _move(source, target)


def _move(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except PermissionError:
        status = source.lstat()
        if not stat.S_ISDIR(status.st_mode):
            # Never for a link: its target, which may be anywhere, would be the one to change.
            raise
        # Moving a directory rewrites its "..", which needs write permission on it unless one is root.
        mode = stat.S_IMODE(status.st_mode)
        source.chmod(mode | stat.S_IRWXU)
        try:
            source.rename(target)
        except OSError:
            source.chmod(mode)
            raise
        target.chmod(mode)


def synchronize(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _libc.syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(path))
    finally:
        os.close(descriptor)
