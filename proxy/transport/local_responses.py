"""Responses that the proxy makes itself: complete ones, and streams of chunks."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time
from typing import TYPE_CHECKING

from proxy.transport.header_fields import BODILESS, connection_line, encode
from proxy.transport.routing import Response, Routed, Stream

if TYPE_CHECKING:
    from proxy.transport.exchange import Exchange
    from proxy.transport.server_state import Counters, ServerState

logger = logging.getLogger(__name__)

PHRASES = {status.value: status.phrase for status in HTTPStatus}
LAST_CHUNK = b"0\r\n\r\n"


def plain_response(status: int, reason: str) -> Response:
    """Return the transport's own error response; pages for people come from the router."""
    return Response(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{reason}\n".encode())


def render_response(response: Response, *, method: bytes, http11: bool, keep_alive: bool) -> bytes:
    bodiless = response.status in BODILESS
    lines = head_lines(response)
    if not bodiless:
        lines.append(b"Content-Length: %d\r\n" % len(response.body))
    lines.append(connection_line(http11=http11, keep_alive=keep_alive))
    if method != b"HEAD" and not bodiless:
        lines.append(response.body)
    return b"".join(lines)


def render_stream_head(stream: Stream, *, http11: bool, keep_alive: bool) -> bytes:
    lines = head_lines(stream)
    if http11 and stream.status not in BODILESS:
        lines.append(b"Transfer-Encoding: chunked\r\n")
    lines.append(connection_line(http11=http11, keep_alive=keep_alive))
    return b"".join(lines)


def head_lines(response: Response | Stream) -> list[bytes]:
    phrase = encode(PHRASES.get(response.status, ""))
    fields = [b"%b: %b\r\n" % (encode(name), encode(value)) for name, value in response.headers]
    return [b"HTTP/1.1 %d %b\r\n" % (response.status, phrase), date_line(int(time())), *fields]


@lru_cache(maxsize=1)
def date_line(second: int) -> bytes:
    return b"Date: %b\r\n" % encode(formatdate(second, usegmt=True))


class StreamResponder:
    """Responds to a request with a stream, as fast as the client reads it.

    Runs the generator in its own task, and always closes it.
    """

    __slots__ = ("_chunked", "_exchange", "_keep_alive", "_ready", "_started", "_stopped", "_stream", "_task")

    def __init__(self, exchange: "Exchange", stream: Stream) -> None:
        self._exchange = exchange
        self._stream = stream
        self._chunked = exchange.head.block.version == b"HTTP/1.1"
        self._keep_alive = False
        self._ready = asyncio.Event()
        self._started = False
        self._stopped = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        exchange, client = self._exchange, self._exchange.client
        exchange.discard_body()
        bodiless = exchange.head.method == b"HEAD" or self._stream.status in BODILESS
        self._keep_alive = (self._chunked or bodiless) and exchange.can_keep_alive()
        exchange.response_started = True
        head = self._stream.with_defaults(exchange.state.default_headers)
        client.write(render_stream_head(head, http11=self._chunked, keep_alive=self._keep_alive))
        self._task = exchange.state.start_task(self._run())
        if bodiless:
            self._stopped = True
            exchange.finish(keep_alive=self._keep_alive, linger=exchange.awaits_body())
        elif client.ended or exchange.state.registry.draining:
            self.drain()
        else:
            client.expire_in(exchange.state.timeouts.response)
            # Reading is the only way to notice that the client has left.
            client.resume_reading()

    # Called by the exchange.

    def request_received(self, data: bytes) -> None:
        self._exchange.client.hold(data)

    def request_ended(self) -> None:
        # A closed tab looks the same as a client that has sent its last request.
        self.drain()

    def client_blocked(self) -> None:
        self._ready.clear()

    def client_ready(self) -> None:
        self._ready.set()

    def expire(self) -> None:
        self._exchange.state.counters.refusals["stream timeout"] += 1
        self.stop()
        self._exchange.client.abort()

    def drain(self) -> None:
        """End at once, without the last chunk: the response is not complete."""
        self.stop()
        self._exchange.client.close()

    def stop(self) -> None:
        if self._stopped:
            # A second cancellation would interrupt the generator's cleanup.
            return
        self._stopped = True
        # A task that is cancelled before it starts would not close the generator.
        if self._started and self._task is not None:
            self._task.cancel()

    # In its own task.

    async def _run(self) -> None:
        self._started = True
        counters = self._exchange.state.counters
        counters.streams += 1
        counters.open_streams += 1
        try:
            if not self._stopped:
                await self._pump()
        except Exception:
            logger.exception("a stream failed")
            counters.errors += 1
            self._stopped = True
            self._exchange.client.abort()
        finally:
            counters.open_streams -= 1
            await close_chunks(self._stream.chunks, counters)

    async def _pump(self) -> None:
        exchange, client = self._exchange, self._exchange.client
        async for chunk in self._stream.chunks:
            if self._stopped:
                return
            if chunk:
                client.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if self._chunked else chunk)
            await self._wait_for_client()
            client.expire_in(exchange.state.timeouts.response)
        if not self._stopped:
            self._stopped = True
            if self._chunked:
                client.write(LAST_CHUNK)
            exchange.finish(keep_alive=self._keep_alive, linger=exchange.awaits_body())

    async def _wait_for_client(self) -> None:
        if self._exchange.client.blocked:
            await self._ready.wait()
        else:
            # A generator that never waits must not block everything else.
            await asyncio.sleep(0)


def release(routed: Routed, state: "ServerState") -> None:
    """Close the stream of a route that is no longer needed."""
    if isinstance(routed, Stream):
        state.start_task(close_chunks(routed.chunks, state.counters))


async def close_chunks(chunks: AsyncGenerator[bytes, None], counters: "Counters") -> None:
    try:
        await chunks.aclose()
    except Exception:
        logger.exception("a stream could not be closed")
        counters.errors += 1
