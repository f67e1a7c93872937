"""Forward connections for clients that cannot reach a server where it listens."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

CHUNK_BYTES = 65536

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Stream]]


@asynccontextmanager
async def forwarding(listener: socket.socket, connect: Connect) -> AsyncIterator[None]:
    """Forward each connection that the socket accepts to a new connection of its own."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner = await connect()
        except OSError:
            writer.close()
            return
        await join((reader, writer), inner)

    server = await asyncio.start_server(forward, sock=listener)
    try:
        yield
    finally:
        server.close()


async def join(one: Stream, other: Stream) -> None:
    """Copy both ways until one side has ended."""
    await asyncio.gather(_pump(one[0], other[1]), _pump(other[0], one[1]))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()
