"""Storage jobs on a plain directory: the homes that CodeHub M1 left on this machine."""

import asyncio
import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

from codehub.adapters.local.storage_jobs import run_job
from codehub.job_protocol import job_request
from codehub.ports import UNRECORDED, ArchiveStore, Report, StoredArchive

# A job notices within half a second that its caller was killed.
LEFTOVER_SECONDS = 10.0
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Upload:
    """An archive of a directory; `skipped` if an earlier run committed it."""

    archive: StoredArchive
    skipped: bool


class DirectoryJobs:
    """Jobs that only read a directory. They lock it, so a second job on it is refused."""

    def __init__(self, store: ArchiveStore) -> None:
        self._store = store

    async def archive(self, directory: Path, key: str, report: Report) -> Upload:
        """Upload the directory under this key, meta last. Skip the upload if both objects exist."""
        await _wait_for_leftover_job(directory)
        output = await run_job("archive", job_request(self._store, key, str(directory), UNRECORDED), report)
        return Upload(output.stored_archive(key), skipped=output.last["skipped"])

    async def find_difference(self, directory: Path, key: str, report: Report) -> str | None:
        """Read the archive back and compare it with the directory. Return None if they are equal."""
        output = await run_job("verify", job_request(self._store, key, str(directory), UNRECORDED), report)
        difference: str | None = output.last["difference"]
        return difference


async def _wait_for_leftover_job(directory: Path) -> None:
    """Wait for the job of a killed caller. If it does not end, the next job reports it."""
    deadline = time.monotonic() + LEFTOVER_SECONDS
    while _is_locked(directory) and time.monotonic() < deadline:  # noqa: ASYNC110 (there is no event to wait for)
        await asyncio.sleep(POLL_SECONDS)


def _is_locked(directory: Path) -> bool:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(descriptor)
    return False
