"""A load generator that is cheap itself: raw HTTP/1.1 over kept connections, one request each at a time."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

HEAD_END = b"\r\n\r\n"
OK = b"HTTP/1.1 200 "
CONTENT_LENGTH = b"\r\ncontent-length:"
# A server that does not answer any more must not keep the benchmark forever.
LONGEST_SECONDS = 60.0


class Refused(Exception):
    """The server answered something other than 200."""


@dataclass(frozen=True)
class Target:
    """What is asked for, again and again."""

    port: int
    path: str
    headers: Mapping[str, str]

    def encode(self) -> bytes:
        headers = {"Host": f"127.0.0.1:{self.port}", **self.headers}
        lines = [f"GET {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass
class Answers:
    """What came back: how long each answer took, in seconds."""

    seconds: list[float] = field(default_factory=list)
    wall_seconds: float = 0.0
    own_cpu_seconds: float = 0.0


class Caller(asyncio.Protocol):
    """Asks, takes the whole answer, asks again until it is time to stop; everything in one callback."""

    def __init__(self, request: bytes, answers: Answers) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._answers = answers
        self._buffer = bytearray()
        self._expected = 0
        self._asked_at = 0.0
        self._until = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def begin(self, until: float) -> None:
        self._until = until
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._expected:
            self._expected = _length_of_answer(self._buffer)
        if self._expected and len(self._buffer) >= self._expected:
            self._take_answer()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError("the server closed the connection"))

    def _ask(self) -> None:
        self._asked_at = time.perf_counter()
        self._transport.write(self._request)

    def _take_answer(self) -> None:
        now = time.perf_counter()
        self._answers.seconds.append(now - self._asked_at)
        refused = not self._buffer.startswith(OK)
        if refused and not self.done.done():
            self.done.set_exception(Refused(bytes(self._buffer[:500]).decode(errors="replace")))
        self._buffer.clear()
        self._expected = 0
        if now < self._until and not refused:
            self._ask()
        elif not self.done.done():
            self.done.set_result(None)


def _length_of_answer(received: bytearray) -> int:
    """Head and body together; 0 while the head is incomplete."""
    end = received.find(HEAD_END)
    if end < 0:
        return 0
    head = bytes(received[:end]).lower() + b"\r\n"
    _, found, rest = head.partition(CONTENT_LENGTH)
    if not found:
        raise Refused("an answer without Content-Length")
    return end + len(HEAD_END) + int(rest.partition(b"\r\n")[0])


async def ask_for(target: Target, connections: int, seconds: float) -> Answers:
    """Keep so many requests under way for so long; the last ones are waited for."""
    answers = Answers()
    async with _connected(target, connections, answers) as callers:
        began, cpu = time.perf_counter(), time.process_time()
        for caller in callers:
            caller.begin(began + seconds)
        async with asyncio.timeout(LONGEST_SECONDS):
            await asyncio.gather(*(caller.done for caller in callers))
        answers.wall_seconds = time.perf_counter() - began
        answers.own_cpu_seconds = time.process_time() - cpu
    return answers


@asynccontextmanager
async def _connected(target: Target, connections: int, answers: Answers) -> AsyncIterator[list[Caller]]:
    loop, request = asyncio.get_running_loop(), target.encode()
    async with AsyncExitStack() as stack:
        callers = []
        for _ in range(connections):
            transport, caller = await loop.create_connection(
                lambda: Caller(request, answers), "127.0.0.1", target.port
            )
            stack.callback(transport.close)
            callers.append(caller)
        yield callers
