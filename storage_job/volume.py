"""Lock a volume for one job at a time, and refuse one that contains mounts."""

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from storage_job.errors import action_failed

# The job's own directory. It is in the volume, because only a rename within one file system is atomic;
# archives leave it out.
WORK_NAME = ".codehub-restore"
_LOCKS_UNSUPPORTED = {errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")

# ext4 has one in the root of every volume.
_FOREIGN = ("lost+found",)


def foreign_names(data_dir: Path) -> tuple[str, ...]:
    """Return the names in the root that belong to the file system: they are not part of the home and stay.

    A directory with this name that this user owns, or that root can read, is part of the home.
    """
    return tuple(name for name in _FOREIGN if _is_foreign(data_dir / name))


def _is_foreign(path: Path) -> bool:
    try:
        return os.geteuid() not in (0, path.lstat().st_uid)
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Hold the volume during the block; another job may still run on it after its worker died."""
    try:
        descriptor = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise action_failed(
            f"Cannot open the volume {data_dir} ({error.strerror}). Check that it is mounted."
        ) from error
    try:
        _lock(descriptor, data_dir)
        _require_no_mounts(data_dir)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, data_dir: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise action_failed(
            f"Another job is working on {data_dir}. Try again when it has finished."
        ) from error
    except OSError as error:
        # Some network file systems cannot lock directories; the control plane's own lock must suffice there.
        if error.errno not in _LOCKS_UNSUPPORTED:
            raise


def _require_no_mounts(data_dir: Path) -> None:
    """Refuse a volume with a mount inside: its content must be neither archived nor removed."""
    inside = bytes(data_dir.resolve()) + b"/"
    for line in _MOUNTS.read_bytes().splitlines():
        mount_point = _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), line.split(b" ")[4])
        if mount_point.startswith(inside):
            name = mount_point.removeprefix(inside).decode(errors="backslashreplace")
            raise action_failed(
                f"Another file system is mounted at {name!r} in the volume. Unmount it, then try again."
            )
