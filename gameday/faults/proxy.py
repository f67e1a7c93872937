"""A proxy between S3 and its clients that can be told to misbehave, for new and open connections alike."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Self

from codehub.embedded.free_ports import LOOPBACK
from gameday.faults.connection import Connection, Cut
from gameday.faults.modes import Mode, Troubles


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
