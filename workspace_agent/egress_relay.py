"""Relays connections from the instance to the egress gateway, and adds the workspace's token."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

HOST = "127.0.0.1"
PORT = 3128
BACKLOG = 256


@dataclass(frozen=True)
class EgressRelay:
    """A listening socket, and the gateway that its connections go to."""

    listening: socket.socket
    gateway: str
    preamble: bytes = field(repr=False)

    async def serve(self) -> None:
        # Imported here, because the IDE can start meanwhile.
        from workspace_agent.relayed_connection import serve  # noqa: PLC0415

        await serve(self.listening, self.gateway, self.preamble)


def open_relay(options: Mapping[str, str]) -> EgressRelay:
    """Listen on loopback; `gateway` is the path of a socket, or host:port."""
    listening = socket.create_server((HOST, PORT), backlog=BACKLOG)
    return EgressRelay(listening, options["gateway"], options["preamble"].encode())
