"""One open event stream: the queue between the hub and a connection, its heartbeats, its HTTP response."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import NoReturn, Self
from uuid import UUID

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from api.live.wire import HEARTBEAT

MAX_FRAMES = 256
MAX_BYTES = 1024 * 1024
# A client with this many frames in its queue gets no progress.
MAX_BEFORE_PROGRESS = 8
SLOTS = 30
EVENT_STREAM = "text/event-stream"
# Nothing between the API and the browser may buffer or store a stream.
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class LiveClient:
    """An async iterator of encoded frames; `LiveHub.connect` opens it.

    It ends when the hub closes, when its session or token is revoked, or when it is read too slowly.
    """

    __slots__ = (
        "_ended", "_pending", "_pending_bytes", "_sending", "_stalled", "_waiter",
        "cancel_sending", "credential_id", "frames_sent", "has_snapshot", "last_event_id", "slot", "user_id",
    )  # fmt: skip

    def __init__(
        self, user_id: UUID, credential_id: str | None = None, last_event_id: str | None = None
    ) -> None:
        self.user_id = user_id
        self.credential_id = credential_id
        self.last_event_id = last_event_id
        self.slot = -1
        self.frames_sent = 0
        # Whether it was sent a snapshot or needs none: nothing else may come first.
        self.has_snapshot = False
        # Called when the stream ends while its reader still sends a frame: a reader that waits for a blocked
        # connection would never see the end.
        self.cancel_sending: Callable[[], object] | None = None
        self._sending = False
        # None instead of empty: thousands of empty queues take megabytes.
        self._pending: deque[bytes] | None = None
        self._pending_bytes = 0
        self._stalled = False
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def ended(self) -> bool:
        return self._ended

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        self._sending = False
        while self._pending is None:
            if self._ended:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        data = self._pending.popleft()
        self._pending_bytes -= len(data)
        self._stalled = False
        if not self._pending:
            self._pending = None
        self._sending = True
        self.frames_sent += 1
        return data

    def offer(self, data: bytes) -> bool:
        """Queue a frame; if too much is queued already, end the stream and return False."""
        if self._ended:
            return True
        if self._pending is None:
            # Of any size: a large snapshot must be possible.
            self._pending = deque()
        elif len(self._pending) >= MAX_FRAMES or self._pending_bytes + len(data) > MAX_BYTES:
            self.end()
            return False
        self._pending.append(data)
        self._pending_bytes += len(data)
        self._wake()
        return True

    def offer_progress(self, data: bytes) -> None:
        """Queue a frame unless the client is behind: the next progress makes up for one that is lost."""
        waiting = len(self._pending or ())
        if waiting < MAX_BEFORE_PROGRESS and (not waiting or self._pending_bytes + len(data) <= MAX_BYTES):
            self.offer(data)

    def beat(self, data: bytes) -> bool:
        """Queue a heartbeat unless frames wait; end and return False if none was read since the last one."""
        if self._ended or self._pending is None:
            return self.offer(data)
        if self._stalled:
            self.end()
            return False
        self._stalled = True
        return True

    def end(self, last: bytes | None = None) -> None:
        """End the stream at once, or after everything queued and this last frame."""
        if last is None:
            self._pending, self._pending_bytes = None, 0
        else:
            self.offer(last)
        self._ended = True
        self._wake()
        if last is None and self._sending and self.cancel_sending is not None:
            self.cancel_sending()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class HeartbeatWheel:
    """Sends heartbeats to all clients from one task; a wheel of slots spreads them over the period."""

    def __init__(self, period_seconds: float) -> None:
        self._pause = period_seconds / SLOTS
        self._slots: list[set[LiveClient]] = [set() for _ in range(SLOTS)]
        self._next_slot = 0
        self.stalled = 0

    def __len__(self) -> int:
        return sum(map(len, self._slots))

    def __iter__(self) -> Iterator[LiveClient]:
        return (client for slot in self._slots for client in slot)

    def add(self, client: LiveClient) -> None:
        client.slot = self._next_slot
        self._slots[client.slot].add(client)
        self._next_slot = (self._next_slot + 1) % SLOTS

    def remove(self, client: LiveClient) -> None:
        self._slots[client.slot].discard(client)

    async def run(self) -> NoReturn:
        while True:
            for slot in self._slots:
                await asyncio.sleep(self._pause)
                self.stalled += sum(not client.beat(HEARTBEAT) for client in slot)


class EventStream(StreamingResponse):
    """Sends the frames of a client until either side ends the stream.

    It holds the connection itself: a generator that did so might be closed much later.
    """

    def __init__(self, connection: AbstractAsyncContextManager[LiveClient]) -> None:
        super().__init__((), media_type=EVENT_STREAM, headers=HEADERS)
        self._connection = connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        async with self._connection as client:
            self.body_iterator = client
            client.cancel_sending = task.cancel if task else None
            try:
                await super().__call__(scope, receive, send)
            except asyncio.CancelledError:
                # Swallow our own cancellation only.
                if task is None or not client.ended:
                    raise
                task.uncancel()
            finally:
                client.cancel_sending = None
