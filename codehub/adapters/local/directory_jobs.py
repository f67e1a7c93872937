"""Storage jobs on a directory that is no volume: homes that another installation left on this machine."""

import asyncio
import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

from codehub.adapters.local.storage_jobs import run_job
from codehub.job_protocol import job_request
from codehub.ports import UNRECORDED, ArchiveStore, Report, StoredArchive

# A job whose caller was killed notices that within half a second.
LEFTOVER_SECONDS = 10.0
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Upload:
    """An archive of a directory; `skipped` if an earlier run had committed it already."""

    archive: StoredArchive
    skipped: bool


class DirectoryJobs:
    """They only read the directory, and hold its lock meanwhile: a second job on it is refused."""

    def __init__(self, store: ArchiveStore) -> None:
        self._store = store

    async def archive(self, directory: Path, key: str, report: Report) -> Upload:
        """Upload the directory's content under this key, meta last; skip the upload if both are there."""
        await _leftover_job_ended(directory)
        output = await run_job("archive", job_request(self._store, key, str(directory), UNRECORDED), report)
        return Upload(output.stored_as(key), skipped=output.last["skipped"])

    async def find_difference(self, directory: Path, key: str, report: Report) -> str | None:
        """Read the archive back and compare it with the directory; None if they are equal."""
        output = await run_job("verify", job_request(self._store, key, str(directory), UNRECORDED), report)
        difference: str | None = output.last["difference"]
        return difference


async def _leftover_job_ended(directory: Path) -> None:
    """Wait for the job of a caller that was killed; the next job itself says so if it does not end."""
    deadline = time.monotonic() + LEFTOVER_SECONDS
    while _is_locked(directory) and time.monotonic() < deadline:  # noqa: ASYNC110 (nobody tells)
        await asyncio.sleep(POLL_SECONDS)


def _is_locked(directory: Path) -> bool:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no locks on this file system, hence no lock of a job either
    finally:
        os.close(descriptor)
    return False
