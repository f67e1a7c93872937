"""File locks, which the kernel releases when the last process that holds them ends."""

import asyncio
import contextlib
import fcntl
import os
import struct
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

POLL_SECONDS = 0.02
# The kernel's `struct flock`, with the whole file as its range.
_FLOCK = struct.Struct("@hhqqi4x")


def open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def acquire_alive_lock(path: Path) -> int:
    """Lock a file for an instance that is about to start. Raise BlockingIOError if it is already locked.

    The lock belongs to the open file, so every process that inherits the descriptor holds it, and
    `is_locked` can check it without taking it.
    """
    descriptor = open_lock(path)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def is_locked(path: Path) -> bool:
    """Return whether a process holds this lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _whole_file(fcntl.F_RDLCK))
    finally:
        os.close(descriptor)
    kind: int = _FLOCK.unpack(found)[0]
    return kind != fcntl.F_UNLCK


def _whole_file(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


@contextlib.contextmanager
def try_lock(path: Path) -> Iterator[int]:
    """Hold a lock file and remove it afterwards. Raise BlockingIOError if it is already held."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _check_current(descriptor, path)
        try:
            yield descriptor
        finally:
            # Remove it while it is held: a process that has opened it sees that it is no longer current.
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _check_current(descriptor: int, path: Path) -> None:
    """Raise BlockingIOError if the previous holder removed the file after it was opened here."""
    try:
        current = os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        current = False
    if not current:
        raise BlockingIOError


@contextlib.asynccontextmanager
async def lock_async(path: Path) -> AsyncIterator[None]:
    """Wait for a lock file and hold it. No thread waits, so it can be cancelled."""
    while True:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(try_lock(path))
            except BlockingIOError:
                await asyncio.sleep(POLL_SECONDS)
                continue
            yield
            return


@contextlib.contextmanager
def lock_blocking(path: Path) -> Iterator[None]:
    """Wait for a lock file in this thread and hold it. Only for locks that are held briefly."""
    while True:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(try_lock(path))
            except BlockingIOError:
                time.sleep(POLL_SECONDS)
                continue
            yield
            return
