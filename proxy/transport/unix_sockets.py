"""Connects safely to a UNIX socket that a workspace can replace.

A copy of codehub/unix_sockets.py, because the transport must not import the rest of CodeHub.
"""

import contextlib
import os
import stat
from collections.abc import Iterator


@contextlib.contextmanager
def connectable(path: str) -> Iterator[str]:
    """Return a path to the socket itself. Raise OSError if it is anything else, such as a symlink.

    The workspace can put a symlink to another server's socket in its place at any moment, so the socket is
    opened once, checked, and reached through its descriptor. That path is also short enough for every socket.
    """
    directory, name = os.path.split(path)
    parent = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        if not stat.S_ISSOCK(os.fstat(found).st_mode):
            raise ConnectionRefusedError(f"{path} is not a socket.")
        yield f"/proc/self/fd/{found}"
    finally:
        os.close(found)
