"""The client's side: one request after the other, on a connection that may stay."""

import asyncio
import logging
import math
from typing import cast

from proxy.transport.core import Core
from proxy.transport.exchange import Exchange
from proxy.transport.header_fields import HeadRefused
from proxy.transport.local_responses import plain_response, render_response
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Forward
from proxy.transport.tunnel import Tunnel

logger = logging.getLogger(__name__)


class ClientConnection(asyncio.Protocol):
    """One connection of a client. While a request is under way, what follows it waits."""

    __slots__ = (
        "_exchange", "_lingering", "_tunnel", "blocked", "core", "credential", "deadline", "ended", "holder",
        "peer", "received", "transport",
    )  # fmt: skip

    transport: asyncio.Transport

    def __init__(self, core: Core) -> None:
        self.core = core
        self.peer = ""
        self.credential: str | None = None
        self.holder: str | None = None
        self.deadline = math.inf
        self.received = b""
        # The client takes no more for now; the client has said that it sends no more.
        self.blocked = False
        self.ended = False
        self._lingering = False
        self._exchange: Exchange | None = None
        self._tunnel: Tunnel | None = None

    # From the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Written at once, and blocked as soon as the kernel takes no more: buffers stay small.
        self.transport.set_write_buffer_limits(0)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if peer else ""
        self.core.counters.connections += 1
        self.wait(self.core.timeouts.head)
        if not self.core.registry.admit(self):
            self._refuse(503, "too many connections")

    def data_received(self, data: bytes) -> None:
        self.core.counters.bytes_from_clients += len(data)
        try:
            if self._exchange is not None:
                self._exchange.request_received(data)
            elif self._lingering:
                return
            elif self.blocked:
                # Another answer would only pile up behind the ones that are not read.
                self.hold(data)
            else:
                self._read(self.received + data if self.received else data)
        except Exception:
            logger.exception("a client's connection failed")
            self._broke()

    def eof_received(self) -> bool:
        self.ended = True
        try:
            if self._exchange is not None:
                self._exchange.request_ended()
            elif self.received and not self._lingering:
                # A whole request may be waiting for its turn.
                self._continue()
            else:
                self.transport.close()
        except Exception:
            logger.exception("a client's connection failed")
            self._broke()
        return True

    def connection_lost(self, _error: Exception | None) -> None:
        self.core.registry.dismiss(self)
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.abandon()

    def pause_writing(self) -> None:
        self.blocked = True
        if self._exchange is not None:
            self._exchange.client_blocked()

    def resume_writing(self) -> None:
        self.blocked = False
        if self._exchange is not None:
            self._exchange.client_ready()
        elif self.received and not self._lingering:
            self._continue()

    # From the registry.

    def expire(self, now: float) -> None:
        if self._tunnel is not None:
            self.deadline = self._tunnel.expire(now)
        elif self._exchange is not None:
            self._exchange.expire()
        elif self.received and not self._lingering:
            self._refuse(408, "the request's head did not come in time")
        else:
            self.transport.abort()

    def drain(self) -> None:
        if self._exchange is not None:
            self._exchange.drain()
        elif self._tunnel is None and not self._lingering:
            self.transport.close()

    def abort(self) -> None:
        if self._tunnel is not None:
            self._tunnel.abort()
        else:
            self.transport.abort()
            if self._exchange is not None:
                self._exchange.abandon()

    # From the exchange.

    def close(self) -> None:
        self.transport.close()

    def write(self, data: bytes) -> None:
        self.core.counters.bytes_to_clients += len(data)
        self.transport.write(data)

    def take(self) -> bytes:
        received, self.received = self.received, b""
        return received

    def hold(self, data: bytes) -> None:
        self.received += data
        self.pause_reading()

    def pause_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def wait(self, seconds: float) -> None:
        self.deadline = self.core.loop.time() + seconds

    def charge(self, credential: str | None, holder: str | None) -> bool:
        if credential == self.credential and holder == self.holder:
            return True
        return self.core.registry.charge(self, credential, holder)

    def may_stay(self, head: RequestHead) -> bool:
        return head.block.keep_alive and not self.core.registry.draining

    def done(self, *, keep_alive: bool, linger: bool) -> None:
        """The answer is out; go on with what waits, or end."""
        self._exchange = None
        if not keep_alive:
            self._end(linger=linger or bool(self.received))
        elif self.received:
            # Not from here: a thousand requests in one packet would be a thousand calls deep.
            self.core.loop.call_soon(self._continue)
        elif self.ended:
            self.transport.close()
        else:
            self.wait(self.core.timeouts.idle)
            self.resume_reading()

    def become_tunnel(self, route: Forward, upstream: asyncio.Transport) -> None:
        self._exchange = None
        self.core.counters.tunnels += 1
        self.core.counters.open_tunnels += 1
        self._tunnel = Tunnel(
            self.transport,
            upstream,
            observer=route.observer,
            counters=self.core.counters,
            timeout=self.core.timeouts.tunnel,
            on_end=self._tunnel_ended,
        )
        self._tunnel.start(early=self.take(), client_blocked=self.blocked, client_ended=self.ended)
        self.deadline = self._tunnel.expire(self.core.loop.time())

    # On its own.

    def _tunnel_ended(self) -> None:
        self.core.counters.open_tunnels -= 1
        self.core.registry.dismiss(self)

    def _continue(self) -> None:
        """Take up what waits, unless something is under way or the last answers have not been read."""
        if self._exchange is not None or self.blocked or self._lingering or self.transport.is_closing():
            return
        try:
            self._read(self.take())
        except Exception:
            logger.exception("a client's connection failed")
            self._broke()

    def _read(self, data: bytes) -> None:
        """Begin with the request whose head is at the beginning of the data, if all of it is here."""
        end = data.find(b"\r\n\r\n") + 4
        try:
            if end < 4:  # noqa: PLR2004 - not found
                self._wait_for_head(data)
                return
            head = self.core.reader.read(data if end == len(data) else data[:end])
        except HeadRefused as refused:
            self._refuse(refused.status, refused.reason)
            return
        self.deadline = math.inf
        self.received = b""
        self.core.counters.requests += 1
        self._exchange = Exchange(self, head)
        if end < len(data):
            self.hold(data[end:])
        self._exchange.begin()

    def _wait_for_head(self, data: bytes) -> None:
        self.core.reader.check_partial(data)
        if self.ended:
            self.transport.close()
            return
        if not self.received:
            # From the first byte on, whatever else comes: slow senders do not move it.
            self.wait(self.core.timeouts.head)
        self.received = data
        self.resume_reading()

    def _refuse(self, status: int, reason: str) -> None:
        self.core.counters.refusals[reason] += 1
        answer = plain_response(status, reason)
        self.write(render_response(answer, method=b"", modern=True, keep_alive=False))
        self._end(linger=True)

    def _end(self, *, linger: bool) -> None:
        """Close. With unread bytes that would reset the client before it reads the answer: linger."""
        self.received = b""
        if not linger or self.ended or self.transport.is_closing():
            self.transport.close()
            return
        self._lingering = True
        self.transport.write_eof()
        self.wait(self.core.timeouts.linger)
        self.resume_reading()

    def _broke(self) -> None:
        if self._exchange is not None:
            self._exchange.broke()
        else:
            self.core.counters.errors += 1
            self.transport.abort()
