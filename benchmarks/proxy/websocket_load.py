"""WebSocket messages, many at once or one after the other, and WebSockets that are only open."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from benchmarks.api.load_generator import HEAD_END, LONGEST_SECONDS, Refused, Target
from benchmarks.proxy.http_load import Outcome, in_microseconds
from benchmarks.proxy.testbed import Contestant, Stage
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
class Talk:
    """So many connections with so many messages of this size under way on each."""

    connections: int
    size: int = SMALL_MESSAGE
    window: int = 1


@dataclass
class Tally:
    """What all connections have had back; how long messages took if only one was under way on each."""

    count: int = 0
    seconds: list[float] = field(default_factory=list)


class Talker(asyncio.Protocol):
    """Sends a message for every one that comes back, so that as many as the window are under way."""

    def __init__(self, handshake: bytes, talk: Talk, tally: Tally) -> None:
        loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        self._handshake = handshake
        self._message, self._answer = frame(talk.size, masked=True), frame(talk.size, masked=False)
        self._window = talk.window
        self._tally = tally
        self._head = bytearray()
        self._received = 0
        self._partial = 0
        self._under_way = 0
        self._sent_at = 0.0
        self._until = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._handshake)

    def connection_lost(self, error: Exception | None) -> None:
        for future in (self.opened, self.done):
            if not future.done():
                future.set_exception(error or Refused("the connection was closed"))
                future.exception()

    def begin(self, until: float) -> None:
        """Once the connection is open."""
        self._until = until
        self._send(self._window, time.perf_counter())

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self._read_head(data)
            return
        if not self._received and not data.startswith(self._answer[:2]):
            self._fail(f"an answer that begins with {data[:50]!r}")
            return
        self._received += len(data)
        count, self._partial = divmod(self._partial + len(data), len(self._answer))
        if count:
            self._take(count)

    def _read_head(self, data: bytes) -> None:
        self._head += data
        if HEAD_END not in self._head:
            return
        if self._head.startswith(SWITCHING):
            self.opened.set_result(None)
        else:
            self.opened.set_exception(Refused(bytes(self._head[:300]).decode(errors="replace")))

    def _take(self, count: int) -> None:
        now = time.perf_counter()
        if self._window == 1:
            self._tally.seconds.append(now - self._sent_at)
        self._tally.count += count
        self._under_way -= count
        if now < self._until:
            self._send(count, now)
        elif self._under_way == 0 and not self.done.done():
            self.done.set_result(None)

    def _send(self, count: int, now: float) -> None:
        self._sent_at = now
        self._under_way += count
        self._transport.write(self._message * count)

    def _fail(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(Refused(reason))
            self.done.exception()
        self._transport.abort()


async def exchange_messages(stage: Stage, contestant: Contestant, talk: Talk, seconds: float) -> Outcome:
    """Keep so many messages under way on each connection; the last ones are waited for."""
    tally = Tally()
    async with talkers(stage, contestant, talk, tally) as everybody:
        began = time.perf_counter()
        await _talk(everybody, began + seconds)
        wall_seconds = time.perf_counter() - began
    if not tally.seconds:
        return Outcome(tally.count, wall_seconds)
    return Outcome(tally.count, wall_seconds, *in_microseconds(tally.seconds))


@asynccontextmanager
async def idle_websockets(stage: Stage, contestant: Contestant, count: int) -> AsyncIterator[None]:
    """Open WebSockets, each of which has carried one message."""
    async with talkers(stage, contestant, Talk(count), Tally()) as everybody:
        await _talk(everybody, until=0)
        yield


async def _talk(everybody: list[Talker], until: float) -> None:
    for talker in everybody:
        talker.begin(until)
    async with asyncio.timeout(LONGEST_SECONDS):
        await asyncio.gather(*(talker.done for talker in everybody))


@asynccontextmanager
async def talkers(
    stage: Stage, contestant: Contestant, talk: Talk, tally: Tally
) -> AsyncIterator[list[Talker]]:
    """Open WebSockets, shared out among the visitors."""
    loop, places = asyncio.get_running_loop(), asyncio.Semaphore(CONNECTING_AT_ONCE)
    port, found = contestant.echo_port, list[Talker]()
    async with AsyncExitStack() as stack:

        async def join(number: int) -> None:
            visitor = stage.visitors[number % len(stage.visitors)]
            headers = visitor.headers | HANDSHAKE | {"Origin": f"http://127.0.0.1:{port}"}
            handshake = Target(port, f"/w/{visitor.workspace_id}/echo", headers).encode()
            async with places, asyncio.timeout(LONGEST_SECONDS):
                transport, talker = await loop.create_connection(
                    lambda: Talker(handshake, talk, tally), "127.0.0.1", port
                )
                stack.callback(transport.close)
                await talker.opened
            found.append(talker)

        async with asyncio.TaskGroup() as tasks:
            for number in range(talk.connections):
                tasks.create_task(join(number))
        yield found
