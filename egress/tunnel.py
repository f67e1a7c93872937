"""Copies bytes in both directions, with backpressure."""

import asyncio
import math
from collections.abc import Callable


class Tunnel:
    """Joins two transports. It ends when both sides have sent EOF, or when one is lost."""

    __slots__ = ("_client", "_deadline", "_ends", "_idle_seconds", "_on_end", "_upstream", "moved")

    def __init__(
        self,
        client: asyncio.Transport,
        upstream: asyncio.Transport,
        idle_seconds: float,
        on_end: Callable[[], None],
    ) -> None:
        self._client = client
        self._upstream = upstream
        self._idle_seconds = idle_seconds
        self._on_end = on_end
        self._ends = 0
        self._deadline = math.inf
        self.moved = True
        client.set_protocol(Side(self, upstream))
        upstream.set_protocol(Side(self, client))

    def start(self, early: bytes, *, client_ended: bool) -> None:
        """Send the client's early data, and resume reading on both sides."""
        self._upstream.resume_reading()
        if early:
            self._upstream.write(early)
        if client_ended:
            self.side_ended(self._upstream)
        elif not self._client.is_closing():
            self._client.resume_reading()

    def expire(self, now: float) -> None:
        """Abort if the tunnel has been idle for too long."""
        if self.moved:
            self.moved = False
            self._deadline = now + self._idle_seconds
        elif now >= self._deadline:
            self.abort()

    def side_ended(self, other: asyncio.Transport) -> None:
        """Half-close: one side has sent EOF; the other may still send."""
        self._ends += 1
        if self._ends > 1:
            self._client.close()
            self._upstream.close()
        elif not other.is_closing():
            other.write_eof()

    def side_lost(self, other: asyncio.Transport, error: Exception | None) -> None:
        if error is None:
            # Flush data that was read before the end.
            other.close()
        else:
            other.abort()
        if other is self._upstream:
            self._on_end()

    def abort(self) -> None:
        self._client.abort()
        self._upstream.abort()


class Side(asyncio.Protocol):
    """Reads from one side and writes to the other."""

    __slots__ = ("_target", "_tunnel")

    def __init__(self, tunnel: Tunnel, target: asyncio.Transport) -> None:
        self._tunnel = tunnel
        self._target = target

    def data_received(self, data: bytes) -> None:
        self._tunnel.moved = True
        self._target.write(data)

    def eof_received(self) -> bool:
        self._tunnel.side_ended(self._target)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._tunnel.side_lost(self._target, exc)

    def pause_writing(self) -> None:
        if not self._target.is_closing():
            self._target.pause_reading()

    def resume_writing(self) -> None:
        if not self._target.is_closing():
            self._target.resume_reading()
