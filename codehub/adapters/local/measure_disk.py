"""Adds up the disk space of directories. A standalone program: `measure_disk.py SECONDS DIRECTORY…`.

It prints JSON: the allocated bytes, and whether it saw everything before its time was up. The content can
change meanwhile, and its owner may try to hide files.
"""

import contextlib
import json
import os
import resource
import stat
import sys
import time
from collections.abc import Iterator

LOWEST_PRIORITY = 19
BLOCK = 512
# How many levels of directories stay open; deeper ones are queued.
DEPTH = 200
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Measuring:
    """A measurement, which stops at the deadline."""

    def __init__(self, deadline: float) -> None:
        self.used_bytes = 0
        self.complete = True
        self._deadline = deadline
        self._queue: list[int] = []

    def add(self, path: str) -> None:
        """Add a directory and everything below it on the same disk; ignore one that does not exist."""
        with contextlib.suppress(FileNotFoundError):
            self._queue.append(os.open(path, _DIRECTORY))
        while self._queue:
            directory = self._queue.pop()
            status = os.fstat(directory)
            self.used_bytes += status.st_blocks * BLOCK
            self._add_below(directory, status.st_dev, DEPTH)

    def _add_below(self, directory: int, device: int, depth: int) -> None:
        """Add what is below a directory, and close it."""
        try:
            for entry, status in self._entries(directory):
                if status.st_dev == device:
                    self._add_entry(directory, entry, status, depth)
        except OSError:
            self.complete = False
        finally:
            os.close(directory)

    def _add_entry(self, directory: int, name: str, status: os.stat_result, depth: int) -> None:
        # Count allocated blocks only, and a file with several names once.
        is_directory = stat.S_ISDIR(status.st_mode)
        self.used_bytes += status.st_blocks * BLOCK // (1 if is_directory else max(status.st_nlink, 1))
        if not is_directory:
            return
        try:
            opened = os.open(name, _DIRECTORY, dir_fd=directory)
        except FileNotFoundError:
            return
        except OSError:
            # Not permitted, replaced meanwhile, or too many open files.
            self.complete = False
            return
        if depth:
            self._add_below(opened, status.st_dev, depth - 1)
        else:
            self._queue.append(opened)

    def _entries(self, directory: int) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(directory) as entries:
            for entry in entries:
                if time.monotonic() > self._deadline:
                    self.complete = False
                    return
                with contextlib.suppress(FileNotFoundError):
                    yield entry.name, entry.stat(follow_symlinks=False)


def main(seconds: float, paths: list[str]) -> None:
    os.nice(LOWEST_PRIORITY)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    measuring = Measuring(time.monotonic() + seconds)
    for path in paths:
        measuring.add(path)
    print(json.dumps({"used_bytes": measuring.used_bytes, "complete": measuring.complete}))  # noqa: T201


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
