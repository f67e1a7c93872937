"""One open stream: a short queue between the hub and somebody's connection."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol, Self
from uuid import UUID

MAX_FRAMES = 256
MAX_BYTES = 1024 * 1024
# Whoever has so many waiting gets no hints.
MAX_BEFORE_HINT = 8


class Host(Protocol):
    """Whoever fills the queue."""

    frames_sent: int

    def admit(self, client: "LiveClient") -> None:
        """Begin to send."""

    def dismiss(self, client: "LiveClient") -> None:
        """Forget it; succeed if it is not known."""


class LiveClient:
    """Use as `async with hub.connect(...) as client: async for data in client.frames()`.

    The stream ends by itself when the hub closes, when the client's rights end, or when it reads too slowly.
    """

    __slots__ = (
        "_ended", "_host", "_pending", "_pending_bytes", "_sending", "_stalled", "_waiter",
        "credential_id", "give_up", "greeted", "last_event_id", "seat", "user_id",
    )  # fmt: skip

    def __init__(
        self, host: Host, user_id: UUID, credential_id: str | None = None, last_event_id: str | None = None
    ) -> None:
        self.user_id = user_id
        self.credential_id = credential_id
        self.last_event_id = last_event_id
        self.seat = -1
        # Whether it was sent a snapshot, or told that it needs none: nothing else may come before.
        self.greeted = False
        # Called at the end of a stream whose reader still holds a frame: one that waits for a connection
        # which takes no more would never come back to see the end.
        self.give_up: Callable[[], object] | None = None
        self._sending = False
        self._host = host
        # An idle client has none: thousands of empty queues are megabytes.
        self._pending: deque[bytes] | None = None
        self._pending_bytes = 0
        self._stalled = False
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        self._host.admit(self)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.give_up = None
        self._host.dismiss(self)

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self._ended

    def frames(self) -> Self:
        return self

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
        self._host.frames_sent += 1
        return data

    def offer(self, data: bytes) -> bool:
        """Queue it; False, and the end of the stream, if too much is waiting already."""
        if self._ended:
            return True
        if self._pending is None:
            # Whatever its size: a large snapshot must be possible.
            self._pending = deque()
        elif len(self._pending) >= MAX_FRAMES or self._pending_bytes + len(data) > MAX_BYTES:
            self.end()
            return False
        self._pending.append(data)
        self._pending_bytes += len(data)
        self._wake()
        return True

    def hint(self, data: bytes) -> None:
        """Queue it unless much is waiting: nobody is cut off for what the next one tells anew."""
        waiting = len(self._pending or ())
        if waiting < MAX_BEFORE_HINT and (not waiting or self._pending_bytes + len(data) <= MAX_BYTES):
            self.offer(data)

    def beat(self, data: bytes) -> bool:
        """Queue a heartbeat if nothing waits; False, and the end, if nothing was read since the last one."""
        if self._ended or self._pending is None:
            return self.offer(data)
        if self._stalled:
            self.end()
            return False
        self._stalled = True
        return True

    def end(self, last: bytes | None = None) -> None:
        """End the stream now, or after what waits and these last words."""
        if last is None:
            self._pending, self._pending_bytes = None, 0
        else:
            self.offer(last)
        self._ended = True
        self._wake()
        if last is None and self._sending and self.give_up is not None:
            self.give_up()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
