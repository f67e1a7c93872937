"""A proxy between S3 and its clients that injects faults into new and open connections."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from http import HTTPStatus
from typing import Self, TypeAlias

from codehub.embedded.free_ports import LOOPBACK
from gameday.faults.modes import ActiveMode, CutConnections, Down, ErrorResponses, Mode, Slow, Stalled

ERROR_CODES = {500: "InternalError", 503: "SlowDown"}
LINGER_SECONDS = 2.0
CHUNK_BYTES = 65_536
# Small, so that a slow connection moves in many steps.
SLOW_CHUNK_BYTES = 4_096
Stream: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class FaultProxy:
    """Listens on its own port and forwards to one server."""

    def __init__(self, upstream_port: int, host: str = LOOPBACK) -> None:
        self.host = host
        self.port = 0
        self._upstream_port = upstream_port
        self._active = ActiveMode()
        self._connections: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def open(cls, upstream_port: int, host: str = LOOPBACK) -> AsyncIterator[Self]:
        proxy = cls(upstream_port, host)
        server = await asyncio.start_server(proxy._accept, host, 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()
            await proxy._end_connections()

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def mode(self) -> Mode:
        return self._active.mode

    @property
    def counts(self) -> Counter[str]:
        """The effects on connections, by description."""
        return self._active.counts

    @property
    def stalled_ports(self) -> frozenset[int]:
        """The ports of clients that wait for held back chunks."""
        return frozenset(+self._active.stalled_ports)

    def inject(self, mode: Mode) -> AbstractContextManager[None]:
        """Activate the mode for the length of a `with` block."""
        return self._active.inject(mode)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (for the type checker: a server's callback is a task)
        self._connections.add(task)
        self.counts["connections"] += 1
        try:
            await self._serve(reader, writer)
            writer.close()
        except (Cut, OSError, asyncio.CancelledError):
            # Cancelling only ends the connection.
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = await asyncio.open_connection(LOOPBACK, self._upstream_port)
        try:
            await Connection(self._active, (reader, writer), server).run()
        finally:
            server[1].transport.abort()

    async def _end_connections(self) -> None:
        ending = list(self._connections)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)


class Cut(Exception):
    """The connection must be aborted."""


class Connection:
    """One client connection and its upstream; every chunk is subject to the active mode."""

    def __init__(self, active: ActiveMode, client: Stream, server: Stream) -> None:
        self._active = active
        self._client = client
        self._server = server
        self._client_port: int = client[1].get_extra_info("peername")[1]
        self._forwarded_bytes = 0

    async def run(self) -> None:
        """Forward until one side ends; raise Cut to abort the connection."""
        pumps = {
            asyncio.create_task(self._forward_requests()),
            asyncio.create_task(self._pump(self._server[0], self._client[1])),
        }
        try:
            ended, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        for pump in ended:
            if request := pump.result():
                await self._respond(request)

    async def _forward_requests(self) -> bytes:
        return await self._pump(self._client[0], self._server[1], is_request=True)

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, is_request: bool = False
    ) -> bytes:
        """Forward until the end; return a chunk that needs an error response instead, or nothing."""
        while chunk := await self._receive(source):
            if is_request and isinstance(self._active.mode, ErrorResponses):
                return chunk
            await self._slow_down(len(chunk))
            allowed = self._allowed_bytes(len(chunk))
            target.write(chunk[:allowed])
            await target.drain()
            if allowed < len(chunk):
                self._active.counts["connections cut"] += 1
                raise Cut
        return b""

    async def _receive(self, source: asyncio.StreamReader) -> bytes:
        size = SLOW_CHUNK_BYTES if isinstance(self._active.mode, Slow) else CHUNK_BYTES
        chunk = await source.read(size)
        if chunk and isinstance(self._active.mode, Stalled):
            await self._active.stall(self._client_port)
        return chunk

    async def _slow_down(self, size: int) -> None:
        mode = self._active.mode
        if isinstance(mode, Slow):
            self._active.counts["bytes slowed down"] += size
            with suppress(TimeoutError):
                await asyncio.wait_for(self._active.changed.wait(), size / mode.bytes_per_second)

    def _allowed_bytes(self, size: int) -> int:
        """Return how many of these bytes to forward; bytes before the fault do not count."""
        mode = self._active.mode
        if isinstance(mode, Down):
            return 0
        if not isinstance(mode, CutConnections):
            self._forwarded_bytes = 0
            return size
        allowed = min(size, mode.after_bytes - self._forwarded_bytes)
        self._forwarded_bytes += allowed
        return allowed

    async def _respond(self, request: bytes) -> None:
        mode = self._active.mode
        # If the fault has ended meanwhile, the connection just closes.
        if isinstance(mode, ErrorResponses):
            self._active.counts[f"responses {mode.status}"] += 1
            await respond_with_error(mode.status, request, *self._client)


async def respond_with_error(
    status: int, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Send an S3 error so that the client can read it; the caller closes the connection."""
    head = _response_head(status)
    writer.write(head if request.startswith(b"HEAD ") else head + _response_body(status))
    await writer.drain()
    writer.write_eof()
    # Closing with unread bytes would reset the connection and lose the response.
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while await reader.read(CHUNK_BYTES):
                pass


def _response_head(status: int) -> bytes:
    return (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/xml\r\n"
        f"Content-Length: {len(_response_body(status))}\r\nConnection: close\r\n\r\n"
    ).encode()


def _response_body(status: int) -> bytes:
    code = ERROR_CODES[status]
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>'
        "<Message>Injected by the game day.</Message></Error>"
    ).encode()
