"""Upgraded connections: bytes in both directions, as fast as the other side takes them."""

import asyncio
import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from proxy.transport.routing import ActivityObserver
from proxy.transport.websocket import FrameScanner

if TYPE_CHECKING:
    from proxy.transport.server_state import Counters

logger = logging.getLogger(__name__)


class Tunnel:
    """Joins two transports. Ends when both sides have ended, or one is lost."""

    __slots__ = (
        "_client", "_deadline", "_ends", "_from_client", "_on_end", "_timeout", "_upstream", "counters",
        "moved",
    )  # fmt: skip

    def __init__(
        self,
        client: asyncio.Transport,
        upstream: asyncio.Transport,
        *,
        observer: ActivityObserver | None,
        counters: "Counters",
        timeout: float,
        on_end: Callable[[], None],
    ) -> None:
        self._client = client
        self._upstream = upstream
        self._timeout = timeout
        self._on_end: Callable[[], None] | None = on_end
        self._ends = 0
        self._deadline = math.inf
        self.counters = counters
        self.moved = True
        self._from_client = ClientSide(self, upstream, observer)
        client.set_protocol(self._from_client)
        upstream.set_protocol(UpstreamSide(self, client))

    def start(self, *, early: bytes, client_blocked: bool, client_ended: bool) -> None:
        """Take over from a client connection in this state."""
        if client_blocked:
            self._upstream.pause_reading()
        if early:
            self._from_client.data_received(early)
        if client_ended:
            self.side_ended(self._upstream)
        elif not self._client.is_closing():
            self._client.resume_reading()

    def expire(self, now: float) -> float:
        """Abort if nothing moved for the timeout; return when to check again."""
        if self.moved:
            self.moved = False
            self._deadline = now + self._timeout
        elif now >= self._deadline:
            self.abort()
        return self._deadline

    def side_ended(self, other: asyncio.Transport) -> None:
        """Note that one side sends no more; the other side may."""
        self._ends += 1
        if self._ends > 1:
            self._client.close()
            self._upstream.close()
        elif not other.is_closing():
            other.write_eof()

    def side_lost(self, other: asyncio.Transport, error: Exception | None) -> None:
        if error is None:
            # Data read before the end is still sent.
            other.close()
        else:
            other.abort()
        if self._on_end is not None and other is self._upstream:
            on_end, self._on_end = self._on_end, None
            on_end()

    def abort(self) -> None:
        self._client.abort()
        self._upstream.abort()


class UpstreamSide(asyncio.Protocol):
    """Reads from the upstream and writes to the client."""

    __slots__ = ("_target", "_tunnel")

    def __init__(self, tunnel: Tunnel, target: asyncio.Transport) -> None:
        self._tunnel = tunnel
        self._target = target

    def data_received(self, data: bytes) -> None:
        self._tunnel.moved = True
        self._tunnel.counters.bytes_to_clients += len(data)
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


class ClientSide(UpstreamSide):
    """Reads from the client and writes to the upstream; an observer may watch."""

    __slots__ = ("_scanner",)

    def __init__(self, tunnel: Tunnel, target: asyncio.Transport, observer: ActivityObserver | None) -> None:
        super().__init__(tunnel, target)
        self._scanner = None if observer is None else FrameScanner(observer)

    def data_received(self, data: bytes) -> None:
        self._tunnel.moved = True
        self._tunnel.counters.bytes_from_clients += len(data)
        self._target.write(data)
        if self._scanner is not None:
            self._observe(self._scanner, data)

    def _observe(self, scanner: FrameScanner, data: bytes) -> None:
        try:
            scanner.feed(data)
        except Exception:
            # The connection matters more than the record of its use.
            logger.exception("an observer failed; this connection continues without one")
            self._tunnel.counters.errors += 1
            self._scanner = None
