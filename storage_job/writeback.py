"""Sends what is being extracted to the disk while more of it comes, so that little is left to wait for."""

import threading
from pathlib import Path
from typing import Self

from storage_job.concurrency import settled
from storage_job.swap import synchronize

PERIOD_SECONDS = 0.5


class Writeback:
    """Use as `async with` around an extraction; an error of the disk is raised at the end of the block."""

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
        await settled(self._thread.join)
        # What led here matters more.
        if self._error is not None and kind is None:
            raise self._error

    def _run(self) -> None:
        while not self._ended.wait(self._period_seconds):
            try:
                synchronize(self._directory)
            except OSError as error:
                # The kernel tells of a lost write only once, so it must not be forgotten.
                self._error = error
                return
