"""Joins a client's TLS connection with a connection to a server on loopback.

Uses protocols instead of streams, because every call to Temporal passes here, and a stream costs an extra
iteration of the event loop.
"""

import asyncio
from collections.abc import Mapping

from codehub.embedded.free_ports import LOOPBACK


class Side(asyncio.Protocol):
    """One of the two connections."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: Side | None = None
        # Data that arrived before the other side was connected.
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)
        else:
            self._early.append(data)

    def join(self, other: "Side") -> None:
        """Connect this side to the other one."""
        self.other, other.other = other, self
        for data in self._early:
            self.data_received(data)
        self._early.clear()

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        self.transport = None
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class ClientSide(Side):
    """The client's connection. The ALPN protocol selects the server's port."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        super().__init__()
        self._ports = ports
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        protocol = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        if (port := self._ports.get(protocol)) is None:
            transport.close()
        else:
            self._connecting = asyncio.create_task(self._connect(port))

    async def _connect(self, port: int) -> None:
        server = Side()
        try:
            await asyncio.get_running_loop().create_connection(lambda: server, LOOPBACK, port)
        except OSError:
            if self.transport is not None:
                self.transport.close()
            return
        self.join(server)
        # The client may have disconnected meanwhile.
        if self.transport is None and server.transport is not None:
            server.transport.close()
