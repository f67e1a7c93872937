"""An error in the words of S3, told so that the client really gets to read it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from http import HTTPStatus
from typing import Self, TypeAlias

from codehub.embedded.free_ports import LOOPBACK
from gameday.faults.modes import Answering, Away, Cutting, Mode, Silent, Slow, Troubles

CODES = {500: "InternalError", 503: "SlowDown"}
LINGER_SECONDS = 2.0


async def answer_with_error(
    status: int, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer a request of which something has been read; whoever calls closes the connection."""
    writer.write(_head(status) if request.startswith(b"HEAD ") else _head(status) + _body(status))
    await writer.drain()
    writer.write_eof()
    # Closed with bytes unread, the connection would be reset and the answer lost on the way.
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while await reader.read(65_536):
                pass


def _head(status: int) -> bytes:
    return (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/xml\r\n"
        f"Content-Length: {len(_body(status))}\r\nConnection: close\r\n\r\n"
    ).encode()


def _body(status: int) -> bytes:
    code = CODES[status]
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>'
        "<Message>The game day says so.</Message></Error>"
    ).encode()


CHUNK_BYTES = 65_536
# Small enough that a slow connection moves in many steps.
SLOW_CHUNK_BYTES = 4_096
End: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Cut(Exception):
    """The connection shall end here, in the middle of whatever goes on."""


class Connection:
    """A client and the server, and the bytes between them."""

    def __init__(self, troubles: Troubles, client: End, server: End) -> None:
        self._troubles = troubles
        self._client = client
        self._server = server
        self._client_port: int = client[1].get_extra_info("peername")[1]
        self._passed_bytes = 0

    async def run(self) -> None:
        """Return when one of them has nothing more to say; raise Cut to have it cut off."""
        pumps = {
            asyncio.create_task(self._pass_requests()),
            asyncio.create_task(self._pump(self._server[0], self._client[1])),
        }
        try:
            ended, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        for pump in ended:
            if unanswered := pump.result():
                await self._answer(unanswered)

    async def _pass_requests(self) -> bytes:
        return await self._pump(self._client[0], self._server[1], answering=True)

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, answering: bool = False
    ) -> bytes:
        """Return nothing at the end; or what was not passed on because it shall be answered here."""
        while chunk := await self._receive(source):
            if answering and isinstance(self._troubles.mode, Answering):
                return chunk
            await self._slow_down(len(chunk))
            allowed = self._allowed(len(chunk))
            target.write(chunk[:allowed])
            await target.drain()
            if allowed < len(chunk):
                self._troubles.counts["connections cut"] += 1
                raise Cut
        return b""

    async def _receive(self, source: asyncio.StreamReader) -> bytes:
        size = SLOW_CHUNK_BYTES if isinstance(self._troubles.mode, Slow) else CHUNK_BYTES
        chunk = await source.read(size)
        if chunk and isinstance(self._troubles.mode, Silent):
            await self._troubles.hold_back(self._client_port)
        return chunk

    async def _slow_down(self, size: int) -> None:
        mode = self._troubles.mode
        if isinstance(mode, Slow):
            self._troubles.counts["bytes slowed down"] += size
            with suppress(TimeoutError):
                await asyncio.wait_for(self._troubles.changed.wait(), size / mode.bytes_per_second)

    def _allowed(self, size: int) -> int:
        """How much of this may go through; what went through before a trouble does not count."""
        mode = self._troubles.mode
        if isinstance(mode, Away):
            return 0
        if not isinstance(mode, Cutting):
            self._passed_bytes = 0
            return size
        allowed = min(size, mode.after_bytes - self._passed_bytes)
        self._passed_bytes += allowed
        return allowed

    async def _answer(self, request: bytes) -> None:
        mode = self._troubles.mode
        # The trouble may be over by now: then the connection just ends.
        if isinstance(mode, Answering):
            self._troubles.counts[f"answers {mode.status}"] += 1
            await answer_with_error(mode.status, request, *self._client)


class FaultProxy:
    """One address in front of one server."""

    def __init__(self, upstream_port: int) -> None:
        self.port = 0
        self._upstream_port = upstream_port
        self._troubles = Troubles()
        self._connections: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def open(cls, upstream_port: int) -> AsyncIterator[Self]:
        proxy = cls(upstream_port)
        server = await asyncio.start_server(proxy._accept, LOOPBACK, 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()
            await proxy._end_connections()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def mode(self) -> Mode:
        return self._troubles.mode

    @property
    def counts(self) -> Counter[str]:
        """What was done to connections, in words."""
        return self._troubles.counts

    @property
    def held_ports(self) -> frozenset[int]:
        """The ports of clients that wait, because something of theirs is held back."""
        return frozenset(+self._troubles.held_ports)

    def trouble(self, mode: Mode) -> AbstractContextManager[None]:
        """Misbehave for the length of a `with` block."""
        return self._troubles.during(mode)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (for the type checker: a server's callback is a task)
        self._connections.add(task)
        self.counts["connections"] += 1
        try:
            await self._serve(reader, writer)
            writer.close()
        except (Cut, OSError, asyncio.CancelledError):
            # Whoever cancels it wants only its end.
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = await asyncio.open_connection(LOOPBACK, self._upstream_port)
        try:
            await Connection(self._troubles, (reader, writer), server).run()
        finally:
            server[1].transport.abort()

    async def _end_connections(self) -> None:
        ending = list(self._connections)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
