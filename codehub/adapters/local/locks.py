"""Locks that the kernel releases with the last process that holds them, however it ends."""

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


def take_life(path: Path) -> int:
    """Lock a file for an instance about to start; every process that inherits the descriptor keeps it locked.

    Such a lock belongs to the open file and not to a process, and it can be asked for without taking it.
    Raise BlockingIOError while it is held.
    """
    descriptor = open_lock(path)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def is_alive(path: Path) -> bool:
    """Whether some process still holds this lock. No process id is involved, so none can be mistaken."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _whole_file(fcntl.F_RDLCK))
    finally:
        os.close(descriptor)
    kind: int = _FLOCK.unpack(answer)[0]
    return kind != fcntl.F_UNLCK


def _whole_file(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[int]:
    """Hold a lock file and remove it afterwards; raise BlockingIOError if somebody else holds it."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _check_current(descriptor, path)
        try:
            yield descriptor
        finally:
            # While it is held: whoever opened this file meanwhile will find that it is no longer current.
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _check_current(descriptor: int, path: Path) -> None:
    """The earlier holder removed the file after we had opened it: what we hold then guards nothing."""
    try:
        current = os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        current = False
    if not current:
        raise BlockingIOError


@contextlib.asynccontextmanager
async def waited_for(path: Path) -> AsyncIterator[None]:
    """Hold a lock file, waiting for its turn without a thread that could not be cancelled."""
    while True:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(exclusive(path))
            except BlockingIOError:
                await asyncio.sleep(POLL_SECONDS)
                continue
            yield
            return


def hold_blocking(path: Path, stack: contextlib.ExitStack) -> None:
    """The same for a thread, where the holder is quick."""
    while True:
        try:
            stack.enter_context(exclusive(path))
        except BlockingIOError:
            time.sleep(POLL_SECONDS)
        else:
            return
