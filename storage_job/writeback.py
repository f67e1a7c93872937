"""Write extracted files to the disk during the extraction, so that little is left to wait for at its end."""

import ctypes
import os
import threading
from pathlib import Path
from typing import Self

from storage_job.concurrency import run_to_completion

PERIOD_SECONDS = 0.5
_libc = ctypes.CDLL(None, use_errno=True)


class Writeback:
    """Use as `async with` around an extraction; a disk error is raised at the end of the block."""

    def __init__(self, directory: Path, period_seconds: float = PERIOD_SECONDS) -> None:
        self._directory = directory
        self._period_seconds = period_seconds
        self._ended = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run)

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        self._ended.set()
        await run_to_completion(self._thread.join)
        # An exception from the block itself takes precedence.
        if self._error is not None and kind is None:
            raise self._error

    def _run(self) -> None:
        while not self._ended.wait(self._period_seconds):
            try:
                sync_file_system(self._directory)
            except OSError as error:
                # The kernel reports a lost write only once, so remember it.
                self._error = error
                return


def sync_file_system(path: Path) -> None:
    """Wait until the file system that contains `path` has written everything to its disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _libc.syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(path))
    finally:
        os.close(descriptor)
