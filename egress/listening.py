"""The sockets that the gateway listens on."""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

# Every user may connect: the token authenticates the workspace.
SOCKET_MODE = 0o666
# Instances may enter the directory, but not list or change it.
DIRECTORY_MODE = 0o711
BACKLOG = 512


async def listen_on_socket(path: Path, protocol: Callable[[], asyncio.Protocol]) -> asyncio.Server:
    """Listen on a UNIX socket; replace the one of an earlier process."""
    return await asyncio.get_running_loop().create_unix_server(protocol, sock=_bind(path), backlog=BACKLOG)


async def listen_on_address(address: str, protocol: Callable[[], asyncio.Protocol]) -> asyncio.Server:
    host, _, port = address.rpartition(":")
    return await asyncio.get_running_loop().create_server(
        protocol, host.strip("[]"), int(port), backlog=BACKLOG
    )


def _bind(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(DIRECTORY_MODE)
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        # Bind through the directory's descriptor, because socket paths are limited to 107 bytes, and rename,
        # so that there is always a socket to connect to.
        unfinished = Path(f"/proc/self/fd/{directory}") / f".{path.name}"
        unfinished.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(unfinished))
        unfinished.chmod(SOCKET_MODE)
        unfinished.rename(unfinished.with_name(path.name))
    finally:
        os.close(directory)
    return listening
