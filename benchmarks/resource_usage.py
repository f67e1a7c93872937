"""CPU time and memory of the parts of a running system."""

import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil

from benchmarks.report import MEGABYTE

SAMPLE_SECONDS = 0.02
Usage = defaultdict[str, float]
PARTS = {"temporal": "Temporal", "postgres": "PostgreSQL", "weed": "S3", "redis-server": "Redis"}


def cpu_seconds(worker: int) -> Usage:
    """Return the user and system time so far of the worker and of each server started by this process."""
    spent: Usage = defaultdict(float)
    for part, process in _parts(worker):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent[part] += times.user + times.system
    return spent


def memory_megabytes(worker: int) -> Usage:
    """Return the current resident memory."""
    used: Usage = defaultdict(float)
    for part, process in _parts(worker):
        with suppress(psutil.NoSuchProcess):
            used[part] += process.memory_info().rss / MEGABYTE
    return used


def _parts(worker: int) -> Iterator[tuple[str, psutil.Process]]:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            part = "worker" if process.pid == worker else PARTS.get(process.name())
            if part:
                yield part, process


@dataclass
class PeakMemory:
    """The peak of the sampled resident memory of the storage job and its children together."""

    megabytes: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        own = psutil.Process(os.getpid())
        while not self._stop.wait(SAMPLE_SECONDS):
            with suppress(psutil.Error):
                self.megabytes = max(self.megabytes, _job_memory(own))

    def stop(self) -> None:
        self._stop.set()


def _job_memory(own: psutil.Process) -> float:
    for child in own.children():
        if "storage_job" in child.cmdline():
            tree = [child, *child.children(recursive=True)]
            return sum(each.memory_info().rss for each in tree) / MEGABYTE
    return 0.0


@contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    peak = PeakMemory()
    watching = threading.Thread(target=peak.watch)
    watching.start()
    try:
        yield peak
    finally:
        peak.stop()
        watching.join()
