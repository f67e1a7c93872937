"""A relay to a server that can refuse, cut, silence or slow down connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from testkit.waiting import until

HOST = "127.0.0.1"
CHUNK_BYTES = 65_536
SLOW_PIECE_BYTES = 16
# Long enough for each piece to arrive on its own.
SLOW_PAUSE_SECONDS = 0.001


class FaultRelay:
    """Forwards connections to a server, over TCP or a Unix socket, until a test breaks them.

    A slow relay sends responses in small pieces. With `cut_after`, it ends a connection right after the
    server has sent these bytes.
    """

    def __init__(
        self,
        target: tuple[str, int] | Path,
        listen_on: Path | None = None,
        *,
        slow: bool = False,
        cut_after: bytes | None = None,
    ) -> None:
        self._target = target
        self._listen_on = listen_on
        self._slow = slow
        self._cut_after = cut_after
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._received = bytearray()
        # Each connection carries data only while the line it was opened on is the current one.
        self._line = _open_line()
        self.port = 0

    @classmethod
    @asynccontextmanager
    async def to(
        cls, address: str, *, slow: bool = False, cut_after: bytes | None = None
    ) -> AsyncIterator[Self]:
        """Open a relay to the server at a URL or `host:port`."""
        parts = urlsplit(address if "://" in address else f"//{address}")
        relay = cls((parts.hostname or HOST, parts.port or 0), slow=slow, cut_after=cut_after)
        async with relay.opened():
            yield relay

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        await self.open()
        try:
            yield
        finally:
            await self.close()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def rewrite(self, url: str) -> str:
        """Return the URL with the relay's address in place of the server's."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}{self.address}").geturl()

    async def open(self) -> None:
        """Accept connections; after `close`, on the same port again."""
        if self._listen_on is not None:
            self._server = await asyncio.start_unix_server(self._accept, self._listen_on)
        else:
            self._server = await asyncio.start_server(self._accept, HOST, self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Refuse new connections and end the open ones."""
        if self._server is not None:
            self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End the open connections; new ones work."""
        for writer in self._writers:
            writer.transport.abort()

    def go_silent(self) -> None:
        """Keep connections open, and accept new ones, but carry nothing: like a server that hangs."""
        self._line = asyncio.Event()

    def resume(self) -> None:
        """Serve new connections; those that went silent stay silent, as after a failover."""
        self._line = _open_line()

    async def wait_until_received(self, content: bytes, *, times: int) -> None:
        """Wait until the server has sent the content this many times, on all connections together."""

        async def received() -> bool:
            return self._received.count(content) >= times

        await until(received, f"the server sends {content!r} {times} times")

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, ends = self._line, {writer}
        self._writers.add(writer)
        try:
            # The kernel of a server that hangs still accepts connections.
            await line.wait()
            server_reader, server_writer = await self._connect()
            ends.add(server_writer)
            self._writers.add(server_writer)
            await asyncio.gather(
                self._send(reader, server_writer, line), self._receive(server_reader, writer, line)
            )
        except OSError:
            # Either side is gone.
            pass
        finally:
            self._writers -= ends
            for end in ends:
                end.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, Path):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection(*self._target)

    async def _send(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while content := await reader.read(CHUNK_BYTES):
                if line is self._line:
                    await _write(writer, content)
        writer.close()

    async def _receive(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while content := await reader.read(CHUNK_BYTES):
                if line is not self._line:
                    continue
                passed, mark, _ = (
                    content.partition(self._cut_after) if self._cut_after else (content, b"", b"")
                )
                self._received += passed + mark
                await self._respond(writer, passed + mark)
                if mark:
                    break
        writer.close()

    def _cut_short(self, content: bytes) -> tuple[bytes, bytes]:
        """Return what may pass, and the mark after which the connection ends if it is there."""
        if self._cut_after is None:
            return content, b""
        before, mark, _ = content.partition(self._cut_after)
        return before + mark, mark

    async def _respond(self, writer: asyncio.StreamWriter, content: bytes) -> None:
        if not self._slow:
            await _write(writer, content)
            return
        for start in range(0, len(content), SLOW_PIECE_BYTES):
            await _write(writer, content[start : start + SLOW_PIECE_BYTES])
            await asyncio.sleep(SLOW_PAUSE_SECONDS)


def _open_line() -> asyncio.Event:
    line = asyncio.Event()
    line.set()
    return line


async def _write(writer: asyncio.StreamWriter, content: bytes) -> None:
    writer.write(content)
    await writer.drain()
