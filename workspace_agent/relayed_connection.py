"""One connection through the relay: copies bytes in both directions, with backpressure."""

import asyncio
import socket
from typing import cast

# Buffer limit in each direction.
BUFFER_BYTES = 1 << 20


async def serve(listening: socket.socket, gateway: str, preamble: bytes) -> None:
    """Relay every connection until the process ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Program(gateway, preamble), sock=listening)
    await server.serve_forever()


class Side(asyncio.Protocol):
    """Reads from one side and writes to the other."""

    other: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.write(data)

    def eof_received(self) -> bool:
        if self.other is not None and not self.other.is_closing():
            self.other.write_eof()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None:
            # Data read before a regular end is still sent.
            self.other.close() if exc is None else self.other.abort()

    def pause_writing(self) -> None:
        if self.other is not None and not self.other.is_closing():
            self.other.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and not self.other.is_closing():
            self.other.resume_reading()


class Program(Side):
    """The program's side; its data waits until the gateway is connected."""

    def __init__(self, gateway: str, preamble: bytes) -> None:
        self._gateway = gateway
        # Sent first: the preamble, then what the program sends meanwhile.
        self._early = preamble
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connecting = asyncio.create_task(self._connect())

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early += data
            # Not earlier: Python 3.11.2 ignores a pause in connection_made.
            self.transport.pause_reading()
        super().data_received(data)

    def eof_received(self) -> bool:
        self._ended = True
        return super().eof_received()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            if self._gateway.startswith("/"):
                upstream, side = await loop.create_unix_connection(Side, self._gateway)
            else:
                host, _, port = self._gateway.rpartition(":")
                upstream, side = await loop.create_connection(Side, host, int(port))
        except OSError:
            # The program sees a closed connection, as from a proxy that is down.
            self.transport.abort()
            return
        side.other, self.other = self.transport, upstream
        upstream.write(self._early)
        if self._ended:
            upstream.write_eof()
        if not self.transport.is_closing():
            self.transport.resume_reading()
