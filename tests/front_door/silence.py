"""A way to a server that can go silent: connections stay open, and nothing comes through any more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from tests.api.gates import Gate

CHUNK = 65_536


class Way(Gate):
    """What was open when it fell silent stays so for ever, as after a failover."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self._server_address = host, port
        self._speaks = asyncio.Event()
        self._speaks.set()

    def fall_silent(self) -> None:
        self._speaks = asyncio.Event()

    def answer_again(self) -> None:
        """On new connections only."""
        self._speaks = asyncio.Event()
        self._speaks.set()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        speaks = self._speaks
        self._open.add(writer)
        with suppress(OSError):
            # A silent server takes connections too: its kernel does.
            await speaks.wait()
            other_reader, other_writer = await asyncio.open_connection(*self._server_address)
            self._open.add(other_writer)
            await asyncio.gather(
                self._copy(reader, other_writer, speaks), self._copy(other_reader, writer, speaks)
            )

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, speaks: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if self._speaks is not speaks:
                    continue
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def silenceable(url: str) -> AsyncIterator[Way]:
    parts = urlsplit(url)
    way = Way(parts.hostname or "127.0.0.1", parts.port or 0)
    await way.open()
    try:
        yield way
    finally:
        await way.close()
