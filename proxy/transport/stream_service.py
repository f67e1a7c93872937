"""An answer of our own that comes piece by piece, as fast as the client takes it."""

import asyncio
import logging
from collections.abc import AsyncGenerator

from proxy.transport.core import Core
from proxy.transport.local_responses import BODILESS, render_stream_head
from proxy.transport.routing import Routed, Stream
from proxy.transport.serving import Request
from proxy.transport.shared import Counters

logger = logging.getLogger(__name__)

LAST_CHUNK = b"0\r\n\r\n"


class StreamService:
    """Runs the generator in a task of its own, and closes it in every case."""

    __slots__ = ("_begun", "_chunked", "_keep_alive", "_ready", "_request", "_stopped", "_stream", "_task")

    def __init__(self, request: Request, stream: Stream) -> None:
        self._request = request
        self._stream = stream
        self._chunked = request.head.block.version == b"HTTP/1.1"
        self._keep_alive = False
        self._ready = asyncio.Event()
        self._begun = False
        self._stopped = False
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        request, client = self._request, self._request.client
        request.discard_body()
        silent = request.head.method == b"HEAD" or self._stream.status in BODILESS
        self._keep_alive = (self._chunked or silent) and request.may_stay()
        request.answered = True
        client.write(render_stream_head(self._stream, modern=self._chunked, keep_alive=self._keep_alive))
        self._task = request.core.keep(self._run())
        if silent:
            self._stopped = True
            request.finish(keep_alive=self._keep_alive, linger=request.is_owed())
        elif client.ended or request.core.registry.draining:
            self.drain()
        else:
            client.wait(request.core.timeouts.answer)
            # Else nobody would see it if the client went away.
            client.resume_reading()

    # From the client.

    def request_received(self, data: bytes) -> None:
        self._request.client.hold(data)

    def request_ended(self) -> None:
        # A closed tab looks the same as a client that only has no more to say.
        self.drain()

    def client_blocked(self) -> None:
        self._ready.clear()

    def client_ready(self) -> None:
        self._ready.set()

    def expire(self) -> None:
        self._request.core.counters.refusals["stream timeout"] += 1
        self.stop()
        self._request.client.abort()

    def drain(self) -> None:
        """End at once, without the last chunk: it is not complete."""
        self.stop()
        self._request.client.close()

    def stop(self) -> None:
        if self._stopped:
            # A second cancellation would interrupt the generator's own cleaning up.
            return
        self._stopped = True
        # A task that has not begun would not close the generator if it were cancelled.
        if self._begun and self._task is not None:
            self._task.cancel()

    # On its own.

    async def _run(self) -> None:
        self._begun = True
        counters = self._request.core.counters
        counters.streams += 1
        counters.open_streams += 1
        try:
            if not self._stopped:
                await self._pump()
        except Exception:
            logger.exception("a stream of ours broke")
            counters.errors += 1
            self._stopped = True
            self._request.client.abort()
        finally:
            counters.open_streams -= 1
            await close_pieces(self._stream.pieces, counters)

    async def _pump(self) -> None:
        request, client = self._request, self._request.client
        async for piece in self._stream.pieces:
            if self._stopped:
                return
            if piece:
                client.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)
            await self._wait_for_client()
            client.wait(request.core.timeouts.answer)
        if not self._stopped:
            self._stopped = True
            if self._chunked:
                client.write(LAST_CHUNK)
            request.finish(keep_alive=self._keep_alive, linger=request.is_owed())

    async def _wait_for_client(self) -> None:
        if self._request.client.blocked:
            await self._ready.wait()
        else:
            # A generator that never waits must not keep everybody else waiting.
            await asyncio.sleep(0)


def let_go(routed: Routed, core: Core) -> None:
    """Nobody wants it any more: what it holds is released."""
    if isinstance(routed, Stream):
        core.keep(close_pieces(routed.pieces, core.counters))


async def close_pieces(pieces: AsyncGenerator[bytes, None], counters: Counters) -> None:
    try:
        await pieces.aclose()
    except Exception:
        logger.exception("a stream of ours could not be closed")
        counters.errors += 1
