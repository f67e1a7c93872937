"""A way to a server that a test can close and open again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Gate:
    """A way to a server that can be closed: then connections are refused, and open ones end."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._port = 0
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
            ends = {writer, upstream_writer}
            self._open |= ends
            await asyncio.gather(_copy(reader, upstream_writer), _copy(upstream_reader, writer))
            self._open -= ends


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def gate_to(url: str) -> AsyncIterator[Gate]:
    parts = urlsplit(url if "://" in url else f"//{url}")
    gate = Gate(parts.hostname or "127.0.0.1", parts.port or 0)
    await gate.open()
    try:
        yield gate
    finally:
        await gate.close()


def led_through(url: str, gate: Gate) -> str:
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}{at}{gate.address}").geturl()
