"""Exchange WebSocket messages, and keep idle WebSockets open."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from benchmarks.api.load_generator import HEAD_END, TIMEOUT_SECONDS, BadResponse, Target
from benchmarks.proxy.http_load import Outcome, latencies
from benchmarks.proxy.testbed import Contestant, Testbed
from benchmarks.proxy.upstream import frame

SWITCHING = b"HTTP/1.1 101 "
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-Fetch-Mode": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
CONNECTING_AT_ONCE = 25
SMALL_MESSAGE = 64


@dataclass(frozen=True)
class MessagePattern:
    """The number of connections, the size of messages, and how many are in flight on each connection."""

    connections: int
    size: int = SMALL_MESSAGE
    window: int = 1


@dataclass
class MessageStats:
    """Messages returned on all connections; round-trip times if only one is in flight on each."""

    count: int = 0
    seconds: list[float] = field(default_factory=list)


class EchoClient(asyncio.Protocol):
    """Sends a message for each one that returns, so that `window` messages are always in flight."""

    def __init__(self, handshake: bytes, pattern: MessagePattern, stats: MessageStats) -> None:
        loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        self._handshake = handshake
        self._message, self._echo = frame(pattern.size, masked=True), frame(pattern.size, masked=False)
        self._window = pattern.window
        self._stats = stats
        self._head = bytearray()
        self._received = 0
        self._partial = 0
        self._in_flight = 0
        self._sent_at = 0.0
        self._until = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._handshake)

    def connection_lost(self, error: Exception | None) -> None:
        for future in (self.opened, self.done):
            if not future.done():
                future.set_exception(error or BadResponse("the connection was closed"))
                future.exception()

    def begin(self, until: float) -> None:
        """Start sending; call it when the connection is open."""
        self._until = until
        self._send(self._window, time.perf_counter())

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self._read_head(data)
            return
        if not self._received and not data.startswith(self._echo[:2]):
            self._fail(f"a message that starts with {data[:50]!r}")
            return
        self._received += len(data)
        count, self._partial = divmod(self._partial + len(data), len(self._echo))
        if count:
            self._count(count)

    def _read_head(self, data: bytes) -> None:
        self._head += data
        if HEAD_END not in self._head:
            return
        if self._head.startswith(SWITCHING):
            self.opened.set_result(None)
        else:
            self.opened.set_exception(BadResponse(bytes(self._head[:300]).decode(errors="replace")))

    def _count(self, count: int) -> None:
        now = time.perf_counter()
        if self._window == 1:
            self._stats.seconds.append(now - self._sent_at)
        self._stats.count += count
        self._in_flight -= count
        if now < self._until:
            self._send(count, now)
        elif self._in_flight == 0 and not self.done.done():
            self.done.set_result(None)

    def _send(self, count: int, now: float) -> None:
        self._sent_at = now
        self._in_flight += count
        self._transport.write(self._message * count)

    def _fail(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(BadResponse(reason))
            self.done.exception()
        self._transport.abort()


async def exchange_messages(
    testbed: Testbed, contestant: Contestant, pattern: MessagePattern, seconds: float
) -> Outcome:
    """Exchange messages for this time, then wait for the last ones."""
    stats = MessageStats()
    async with open_clients(testbed, contestant, pattern, stats) as clients:
        began = time.perf_counter()
        await _exchange(clients, began + seconds)
        wall_seconds = time.perf_counter() - began
    if not stats.seconds:
        return Outcome(stats.count, wall_seconds)
    return Outcome(stats.count, wall_seconds, *latencies(stats.seconds))


@asynccontextmanager
async def idle_websockets(testbed: Testbed, contestant: Contestant, count: int) -> AsyncIterator[None]:
    """Keep WebSockets open; each has carried one message."""
    async with open_clients(testbed, contestant, MessagePattern(count), MessageStats()) as clients:
        await _exchange(clients, until=0)
        yield


async def _exchange(clients: list[EchoClient], until: float) -> None:
    for client in clients:
        client.begin(until)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await asyncio.gather(*(client.done for client in clients))


@asynccontextmanager
async def open_clients(
    testbed: Testbed, contestant: Contestant, pattern: MessagePattern, stats: MessageStats
) -> AsyncIterator[list[EchoClient]]:
    """Open WebSockets, evenly for all browsers."""
    loop, slots = asyncio.get_running_loop(), asyncio.Semaphore(CONNECTING_AT_ONCE)
    port, opened = contestant.echo_port, list[EchoClient]()
    async with AsyncExitStack() as stack:

        async def connect(number: int) -> None:
            browser = testbed.browsers[number % len(testbed.browsers)]
            headers = browser.headers(browser.workspace_id, port) | HANDSHAKE
            headers["Origin"] = f"http://{headers['Host']}"
            handshake = Target(port, f"/w/{browser.workspace_id}/echo", headers).encode()
            async with slots, asyncio.timeout(TIMEOUT_SECONDS):
                transport, client = await loop.create_connection(
                    lambda: EchoClient(handshake, pattern, stats), "127.0.0.1", port
                )
                stack.callback(transport.close)
                await client.opened
            opened.append(client)

        async with asyncio.TaskGroup() as tasks:
            for number in range(pattern.connections):
                tasks.create_task(connect(number))
        yield opened
