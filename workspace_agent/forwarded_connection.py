"""One connection from the proxy: its first line names a port, and everything after it goes there.

`[SECRET ]CONNECT 3000` connects to this port and copies bytes both ways; the connection closes if nothing
listens there. `[SECRET ]LIST` responds with the listening ports as JSON.
"""

import asyncio
import hmac
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from workspace_agent.listening_ports import ListeningPort, find_listening_ports
from workspace_agent.relayed_connection import Side

if TYPE_CHECKING:
    from workspace_agent.port_forwarder import PortForwarder

LOOPBACK = ("127.0.0.1", "::1")
LONGEST_LINE = 256
LINE_SECONDS = 10
LAST_PORT = 65535


async def serve(forwarder: "PortForwarder") -> None:
    """Serve every connection until the process ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Client(forwarder), sock=forwarder.listening)
    await server.serve_forever()


class Client(Side):
    """The proxy's side; data after the first line waits until the port is connected."""

    def __init__(self, forwarder: "PortForwarder") -> None:
        self._forwarder = forwarder
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._deadline = asyncio.get_running_loop().call_later(LINE_SECONDS, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.write(data)
            return
        self._received += data
        line, end, rest = self._received.partition(b"\n")
        if end:
            self._deadline.cancel()
            self.transport.pause_reading()
            self._serving = asyncio.create_task(self._serve(line, rest))
        elif len(line) > LONGEST_LINE:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        super().connection_lost(exc)

    async def _serve(self, line: bytes, rest: bytes) -> None:
        match self._parse(line):
            case [b"LIST"]:
                document = [asdict(each) for each in await self._list()]
                self.transport.write(json.dumps(document).encode())
                self.transport.close()
            case [b"CONNECT", port] if await self._may_connect(port):
                await self._connect(int(port), rest)
            case _:
                self.transport.abort()

    def _parse(self, line: bytes) -> list[bytes]:
        """Return the words of the line without the secret, or nothing if the secret is wrong."""
        words, secret = line.split(b" "), self._forwarder.secret.encode()
        if not secret:
            return words
        return words[1:] if hmac.compare_digest(words[0], secret) else []

    async def _list(self) -> list[ListeningPort]:
        found = await asyncio.to_thread(find_listening_ports, self._forwarder.marker)
        return [each for each in found if each.port not in self._forwarder.reserved]

    async def _may_connect(self, port: bytes) -> bool:
        if not port.isdigit() or not 0 < int(port) <= LAST_PORT or int(port) in self._forwarder.reserved:
            return False
        return not self._forwarder.marker or int(port) in {each.port for each in await self._list()}

    async def _connect(self, port: int, rest: bytes) -> None:
        loop = asyncio.get_running_loop()
        for host in LOOPBACK:
            try:
                upstream, side = await loop.create_connection(Side, host, port)
            except OSError:
                continue
            if self.transport.is_closing():
                upstream.abort()
                return
            side.other, self.other = self.transport, upstream
            upstream.write(rest)
            self.transport.resume_reading()
            return
        self.transport.abort()
