"""A cheap load generator: raw HTTP/1.1 on persistent connections, one request at a time on each."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

HEAD_END = b"\r\n\r\n"
OK = b"HTTP/1.1 200 "
CONTENT_LENGTH = b"\r\ncontent-length:"
# A server that stops responding must not block the benchmark.
TIMEOUT_SECONDS = 60.0


class BadResponse(Exception):
    """The server sent something other than 200."""


@dataclass(frozen=True)
class Target:
    """The request that is repeated."""

    port: int
    path: str
    headers: Mapping[str, str]

    def encode(self) -> bytes:
        headers = {"Host": f"127.0.0.1:{self.port}", **self.headers}
        lines = [f"GET {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass
class Responses:
    """How long each response took, in seconds."""

    seconds: list[float] = field(default_factory=list)
    wall_seconds: float = 0.0
    own_cpu_seconds: float = 0.0


class LoadConnection(asyncio.Protocol):
    """Sends a request, reads the whole response, and repeats until the time is over, in one callback."""

    def __init__(self, request: bytes, responses: Responses) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._responses = responses
        self._buffer = bytearray()
        self._expected = 0
        self._sent_at = 0.0
        self._until = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def begin(self, until: float) -> None:
        self._until = until
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._expected:
            self._expected = _response_length(self._buffer)
        if self._expected and len(self._buffer) >= self._expected:
            self._take_response()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError("the server closed the connection"))

    def _send(self) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(self._request)

    def _take_response(self) -> None:
        now = time.perf_counter()
        self._responses.seconds.append(now - self._sent_at)
        failed = not self._buffer.startswith(OK)
        if failed and not self.done.done():
            self.done.set_exception(BadResponse(bytes(self._buffer[:500]).decode(errors="replace")))
        self._buffer.clear()
        self._expected = 0
        if now < self._until and not failed:
            self._send()
        elif not self.done.done():
            self.done.set_result(None)


def _response_length(received: bytearray) -> int:
    """Return the length of head and body together, or 0 while the head is incomplete."""
    end = received.find(HEAD_END)
    if end < 0:
        return 0
    head = bytes(received[:end]).lower() + b"\r\n"
    _, found, rest = head.partition(CONTENT_LENGTH)
    if not found:
        raise BadResponse("a response without Content-Length")
    return end + len(HEAD_END) + int(rest.partition(b"\r\n")[0])


async def send_requests(target: Target, connections: int, seconds: float) -> Responses:
    """Keep one request in flight on each connection for this time, then wait for the last ones."""
    responses = Responses()
    async with _connected(target, connections, responses) as clients:
        began, cpu = time.perf_counter(), time.process_time()
        for client in clients:
            client.begin(began + seconds)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await asyncio.gather(*(client.done for client in clients))
        responses.wall_seconds = time.perf_counter() - began
        responses.own_cpu_seconds = time.process_time() - cpu
    return responses


@asynccontextmanager
async def _connected(
    target: Target, connections: int, responses: Responses
) -> AsyncIterator[list[LoadConnection]]:
    loop, request = asyncio.get_running_loop(), target.encode()
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(connections):
            transport, client = await loop.create_connection(
                lambda: LoadConnection(request, responses), "127.0.0.1", target.port
            )
            stack.callback(transport.close)
            clients.append(client)
        yield clients
