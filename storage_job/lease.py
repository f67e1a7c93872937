"""Stops a job whose caller no longer renews its lease, for callers that cannot keep its stdin open."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

POLL_SECONDS = 0.5
# Time for a stopping job to remove its work directory and abort its upload.
GRACE_SECONDS = 10.0
EXIT_STATUS = 128 + signal.SIGHUP


def boot_time() -> float:
    # Unlike the monotonic clock, this one keeps running while the machine is suspended.
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class Lease:
    """A file that the caller rewrites, and the longest time that it may stay unchanged.

    Only changes count, so the clocks of two machines need not agree.
    """

    file: Path
    seconds: float
    clock: Callable[[], float] = boot_time
    _content: bytes | None = None
    _changed_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._changed_at = self.clock()

    def expired(self) -> bool:
        content = self._read()
        if content is not None and content != self._content:
            self._content, self._changed_at = content, self.clock()
        return self.clock() - self._changed_at > self.seconds

    def _read(self) -> bytes | None:
        try:
            return self.file.read_bytes()
        except OSError:
            return None


def watch(lease: Lease, stop: Callable[[], object]) -> None:
    """Call `stop` from another thread when the lease expires; kill the process if it does not stop in time.

    The next user of the volume relies on this, so a hanging disk must not delay it.
    """

    def run() -> None:
        while not lease.expired():
            time.sleep(POLL_SECONDS)
        stop()
        time.sleep(GRACE_SECONDS)
        os._exit(EXIT_STATUS)

    threading.Thread(target=run, daemon=True).start()
