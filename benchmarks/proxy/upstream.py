"""A cheap upstream that echoes WebSocket messages, and serves pages where nginx is missing.

Clients send messages of one length, only x's, with an empty mask, so it is enough to count bytes.
"""

import argparse
import asyncio
import base64
import hashlib
from typing import cast

import uvloop

SMALL, LARGE = "small", "large"
SIZES = {SMALL: 1024, LARGE: 1024 * 1024}
HEAD_END = b"\r\n\r\n"
KEY = b"sec-websocket-key: "
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
BINARY, MASKED = 0x82, 0x80
LENGTH_16, LENGTH_64 = 126, 127
LONGEST_HEADER = 14
BACKLOG = 4096


def frame(size: int, *, masked: bool) -> bytes:
    """Return a whole message."""
    flag = MASKED if masked else 0
    if size < LENGTH_16:
        header = bytes([BINARY, flag | size])
    elif size < 1 << 16:
        header = bytes([BINARY, flag | LENGTH_16]) + size.to_bytes(2, "big")
    else:
        header = bytes([BINARY, flag | LENGTH_64]) + size.to_bytes(8, "big")
    return header + (bytes(4) if masked else b"") + b"x" * size


def payload_size(start: bytes) -> int:
    """Return the size of the payload, given the start of a frame."""
    short = start[1] & ~MASKED
    width = {LENGTH_16: 2, LENGTH_64: 8}.get(short, 0)
    return int.from_bytes(start[2 : 2 + width], "big") if width else short


def page(size: int) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode() + b"x" * size


PAGES = {name.encode(): page(size) for name, size in SIZES.items()}
HEALTHY = page(2)


def accept(head: bytes) -> bytes:
    """Return the response to a handshake."""
    _, _, rest = head.lower().partition(KEY)
    key = head[len(head) - len(rest) :].partition(b"\r\n")[0]
    token = base64.b64encode(hashlib.sha1(key.strip() + MAGIC).digest())  # noqa: S324 (RFC 6455 wants it)
    fields = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + token
    return b"HTTP/1.1 101 Switching Protocols\r\n" + fields + HEAD_END


class Connection(asyncio.Protocol):
    """Responds to requests until one is a handshake; then counts bytes and echoes."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._upgraded = False
        self._frame_size = 0
        self._echo_frame = b""
        self._pending = 0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._frame_size:
            self._echo(len(data))
            return
        self._buffer += data
        while not self._upgraded and (end := self._buffer.find(HEAD_END)) >= 0:
            head = bytes(self._buffer[:end])
            del self._buffer[: end + len(HEAD_END)]
            self._respond(head)
        if self._upgraded and len(self._buffer) >= LONGEST_HEADER:
            self._learn_frame_size()

    def _respond(self, head: bytes) -> None:
        if KEY in head.lower():
            self._upgraded = True
            self._transport.write(accept(head))
        else:
            path = head.split(b" ", 2)[1]
            self._transport.write(PAGES.get(path.rpartition(b"/")[2], HEALTHY))

    def _learn_frame_size(self) -> None:
        size = payload_size(bytes(self._buffer[:LONGEST_HEADER]))
        self._frame_size, self._echo_frame = len(frame(size, masked=True)), frame(size, masked=False)
        self._echo(len(self._buffer))
        self._buffer.clear()

    def _echo(self, received: int) -> None:
        count, self._pending = divmod(self._pending + received, self._frame_size)
        if count:
            self._transport.write(self._echo_frame * count)


async def serve(port: int, socket: str) -> None:
    loop = asyncio.get_running_loop()
    # Both need a name: uvloop closes a server that nobody refers to.
    on_socket = await loop.create_unix_server(Connection, socket, backlog=BACKLOG)
    on_port = await loop.create_server(Connection, "127.0.0.1", port, backlog=BACKLOG)
    await asyncio.gather(on_socket.serve_forever(), on_port.serve_forever())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("socket")
    arguments = parser.parse_args()
    uvloop.run(serve(arguments.port, arguments.socket))
