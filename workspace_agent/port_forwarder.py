"""Lets the proxy reach the ports of programs in the instance, including those on loopback only."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from workspace_agent.options import socket_path

BACKLOG = 256
EVERYONE = 0o666


@dataclass(frozen=True)
class PortForwarder:
    """A listening socket, and which ports may be opened through it.

    `reserved` ports are CodeHub's own. Without a network namespace, `marker` identifies the instance's
    processes.
    """

    listening: socket.socket
    reserved: frozenset[int]
    marker: str = ""
    secret: str = field(default="", repr=False)

    async def serve(self) -> None:
        # Imported here, because the IDE can start meanwhile.
        from workspace_agent.forwarded_connection import serve  # noqa: PLC0415

        await serve(self)


def open_forwarder(options: Mapping[str, str]) -> PortForwarder:
    """Listen on a UNIX socket in the directory `sockets`, or on the TCP port `port` of every interface."""
    if "sockets" in options:
        listening = socket.socket(socket.AF_UNIX)
        path = socket_path(options["sockets"], options["name"])
        listening.bind(path)
        # The directory restricts who may connect; in a container, CodeHub is another user.
        os.chmod(path, EVERYONE)  # noqa: PTH101 (this program starts in milliseconds)
        listening.listen(BACKLOG)
    else:
        listening = socket.create_server(("", int(options["port"])), backlog=BACKLOG)
    reserved = frozenset(map(int, options.get("reserved", "").split()))
    return PortForwarder(listening, reserved, options.get("marker", ""), options.get("secret", ""))
