"""The archive store under another address, for jobs that cannot reach the loopback interface."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from codehub.ports import ArchiveStore
from tests.buckets import Bucket
from tests.contracts.test_archives import store_of
from tests.forwarding import join


@asynccontextmanager
async def store_at(host: str, bucket: Bucket) -> AsyncIterator[tuple[ArchiveStore, set[str]]]:
    """Open the store at this address; also return a record of its clients."""
    async with forwarded(host, bucket.server.endpoint_url) as (url, callers):
        yield store_of(bucket, endpoint_url=url), callers


class Gate:
    """Holds new connections from elsewhere while it is closed."""

    def __init__(self) -> None:
        self.held: set[str] = set()
        """The addresses of clients that wait."""
        self._opened = asyncio.Event()
        self._opened.set()

    def close(self) -> None:
        self._opened.clear()

    def open(self) -> None:
        self.held.clear()
        self._opened.set()

    async def enter(self, address: str) -> None:
        if not self._opened.is_set():
            self.held.add(address)
        await self._opened.wait()


@asynccontextmanager
async def forwarded(
    host: str, endpoint_url: str, gate: Gate | None = None
) -> AsyncIterator[tuple[str, set[str]]]:
    """Return a URL at this address for a server on the loopback interface, and a record of its clients.

    The gate holds clients that are not on the host itself.
    """
    callers: set[str] = set()
    port = int(endpoint_url.rpartition(":")[2])

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller: str = writer.get_extra_info("peername")[0]
        callers.add(caller)
        if gate is not None and caller != host:
            await gate.enter(caller)
        await join((reader, writer), await asyncio.open_connection("127.0.0.1", port))

    server = await asyncio.start_server(forward, host, 0)
    async with server:
        own_port = server.sockets[0].getsockname()[1]
        yield f"http://{host}:{own_port}", callers
