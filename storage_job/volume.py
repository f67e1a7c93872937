"""The volume: one job at a time, and the directory in it that belongs to the job."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from storage_job.errors import failed
from storage_job.mounts import require_no_mounts

# Inside the volume, since only a rename within one file system is atomic; archives leave it out.
WORK_NAME = ".codehub-restore"
_NO_LOCKS_HERE = {errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


@contextlib.contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Hold the volume; a job whose worker died may still be at work on it."""
    try:
        descriptor = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise failed(f"The volume {data_dir} cannot be opened ({error.strerror}); is it mounted?") from error
    try:
        _lock(descriptor, data_dir)
        require_no_mounts(data_dir)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, data_dir: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise failed(f"Another job is at work on {data_dir}; try again when it has ended.") from error
    except OSError as error:
        # Some network file systems lock no directories; there, the control plane's own lock has to do.
        if error.errno not in _NO_LOCKS_HERE:
            raise
