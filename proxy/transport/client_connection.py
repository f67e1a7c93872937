"""One client connection: a sequence of requests, or a WebSocket."""

import asyncio
import logging
import math
from typing import TYPE_CHECKING, cast

from proxy.transport.client_addresses import group_of
from proxy.transport.exchange import TOO_MANY_OF_ADDRESS, Exchange
from proxy.transport.local_responses import plain_response, render_response
from proxy.transport.request_head import HeadRefused, RequestHead
from proxy.transport.routing import Forward, Response
from proxy.transport.tunnel import Tunnel

if TYPE_CHECKING:
    from proxy.transport.server_state import ServerState

logger = logging.getLogger(__name__)

TOO_LARGE = 431


class ClientConnection(asyncio.Protocol):
    """Serves one request at a time; data that arrives meanwhile is held."""

    __slots__ = (
        "_exchange", "_lingering", "_proxy", "_tunnel", "address", "blocked", "credential", "deadline",
        "ended", "held", "peer", "state", "transport", "user",
    )  # fmt: skip

    transport: asyncio.Transport

    def __init__(self, state: "ServerState") -> None:
        self.state = state
        # The client's address; behind a trusted proxy, that of the latest request.
        self.peer = ""
        # The address of the trusted proxy, if the peer is one.
        self._proxy: str | None = None
        # The key that the connection is counted by.
        self.address: str | None = None
        self.credential: str | None = None
        self.user: str | None = None
        self.deadline = math.inf
        self.held = b""
        # The client reads no more for now.
        self.blocked = False
        # The client has closed its sending side.
        self.ended = False
        self._lingering = False
        self._exchange: Exchange | None = None
        self._tunnel: Tunnel | None = None

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Pause as soon as the kernel takes no more, to keep buffers small.
        self.transport.set_write_buffer_limits(0)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if peer else ""
        self.state.counters.connections += 1
        self.expire_in(self.state.timeouts.head)
        if self.state.trusted_proxies.includes(self.peer):
            self._proxy = self.peer
        if not self.state.registry.add(self):
            self._turn_away(503, "too many connections")
        elif self._proxy is None and not self.state.registry.place(self, group_of(self.peer)):
            self._turn_away(429, TOO_MANY_OF_ADDRESS)

    def data_received(self, data: bytes) -> None:
        self.state.counters.bytes_from_clients += len(data)
        try:
            if self._exchange is not None:
                self._exchange.request_received(data)
            elif self._lingering:
                return
            elif self.blocked:
                # Another response would only queue behind the unread ones.
                self.hold(data)
            else:
                self._read(self.held + data if self.held else data)
        except Exception:
            logger.exception("a client connection failed")
            self._fail_internally()

    def eof_received(self) -> bool:
        self.ended = True
        try:
            if self._exchange is not None:
                self._exchange.request_ended()
            elif self.held and not self._lingering:
                # A complete request may be waiting.
                self._continue()
            else:
                self.transport.close()
        except Exception:
            logger.exception("a client connection failed")
            self._fail_internally()
        return True

    def connection_lost(self, _error: Exception | None) -> None:
        self.state.registry.remove(self)
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.cancel()

    def pause_writing(self) -> None:
        self.blocked = True
        if self._exchange is not None:
            self._exchange.client_blocked()

    def resume_writing(self) -> None:
        self.blocked = False
        if self._exchange is not None:
            self._exchange.client_ready()
        elif self.held and not self._lingering:
            self._continue()

    # Called by the registry.

    def expire(self, now: float) -> None:
        """End what has taken too long."""
        if self._tunnel is not None:
            self.deadline = self._tunnel.expire(now)
        elif self._exchange is not None:
            self._exchange.expire()
        elif self.held and not self._lingering and not self.blocked:
            self._refuse(408, "the request's head did not arrive in time")
        else:
            self.transport.abort()

    def drain(self) -> None:
        """End after the current request; close now if there is none."""
        if self._exchange is not None:
            self._exchange.drain()
        elif self._tunnel is None and not self._lingering:
            self.transport.close()

    def abort(self) -> None:
        """End now."""
        if self._tunnel is not None:
            self._tunnel.abort()
        else:
            self.transport.abort()
            if self._exchange is not None:
                self._exchange.cancel()

    # Called by the exchange and its handler.

    def close(self) -> None:
        """End once everything written is sent."""
        self.transport.close()

    def write(self, data: bytes) -> None:
        self.state.counters.bytes_to_clients += len(data)
        self.transport.write(data)

    def hold(self, data: bytes) -> None:
        """Keep data for later, and pause reading."""
        self.held += data
        self.pause_reading()

    def take(self) -> bytes:
        """Return the held data."""
        held, self.held = self.held, b""
        return held

    def pause_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def expire_in(self, seconds: float) -> None:
        self.deadline = self.state.loop.time() + seconds

    def extend(self, seconds: float, at_most: float) -> None:
        """Postpone the deadline, to at most `at_most` from now."""
        self.deadline = min(self.deadline + seconds, self.state.loop.time() + at_most)

    def identify(self, head: RequestHead) -> bool:
        """Set the client that a trusted proxy forwards for; return False if it has too many connections."""
        if self._proxy is None:
            return True
        self.peer = self.state.trusted_proxies.client_of(self._proxy, head.get(b"x-forwarded-for"))
        address = group_of(self.peer)
        return address == self.address or self.state.registry.place(self, address)

    def assign(self, credential: str | None, user: str | None) -> bool:
        """Count the connection for these; return False if the user has too many."""
        if credential == self.credential and user == self.user:
            return True
        return self.state.registry.assign(self, credential, user)

    def can_keep_alive(self, head: RequestHead) -> bool:
        return head.block.keep_alive and not self.state.registry.draining

    def exchange_done(self, *, keep_alive: bool, linger: bool) -> None:
        """Continue with held data, wait for the next request, or close."""
        self._exchange = None
        if not keep_alive:
            self._end(linger=linger or bool(self.held))
        elif self.held:
            # A client that reads no responses must not stay forever.
            self.expire_in(self.state.timeouts.idle)
            # Not a direct call: a thousand requests in one packet would be a thousand calls deep.
            self.state.loop.call_soon(self._continue)
        elif self.ended:
            self.transport.close()
        else:
            self.expire_in(self.state.timeouts.idle)
            self.resume_reading()

    def become_tunnel(self, route: Forward, upstream: asyncio.Transport) -> None:
        """Connect the client to the upstream directly, for a WebSocket."""
        self._exchange = None
        self.state.counters.tunnels += 1
        self.state.counters.open_tunnels += 1
        self._tunnel = Tunnel(
            self.transport,
            upstream,
            observer=route.observer,
            counters=self.state.counters,
            timeout=self.state.timeouts.tunnel,
            on_end=self._tunnel_ended,
        )
        self._tunnel.start(early=self.take(), client_blocked=self.blocked, client_ended=self.ended)
        self.deadline = self._tunnel.expire(self.state.loop.time())

    # Internal.

    def _tunnel_ended(self) -> None:
        self.state.counters.open_tunnels -= 1
        self.state.registry.remove(self)

    def _continue(self) -> None:
        """Read held data, unless a request is being served or its responses are unread."""
        if self._exchange is not None or self.blocked or self._lingering or self.transport.is_closing():
            return
        try:
            self._read(self.take())
        except Exception:
            logger.exception("a client connection failed")
            self._fail_internally()

    def _read(self, data: bytes) -> None:
        """Start the request at the beginning of the data if its head is complete."""
        end = data.find(b"\r\n\r\n") + 4
        try:
            if end < 4:  # noqa: PLR2004 - not found
                self._wait_for_head(data)
                return
            head = self.state.request_heads.read(data if end == len(data) else data[:end])
        except HeadRefused as refused:
            too_large = refused.status == TOO_LARGE
            explained = self.state.router.explain_too_large(data) if too_large else None
            self._refuse(refused.status, refused.reason, explained)
            return
        self.deadline = math.inf
        self.held = b""
        self.state.counters.requests += 1
        self._exchange = Exchange(self, head)
        if end < len(data):
            self.hold(data[end:])
        self._exchange.start()

    def _wait_for_head(self, data: bytes) -> None:
        self.state.request_heads.check_partial(data)
        if self.ended:
            self.transport.close()
            return
        if not self.held:
            # Counts from the first byte, so slow senders gain no time.
            self.expire_in(self.state.timeouts.head)
        self.held = data
        self.resume_reading()

    def _turn_away(self, status: int, reason: str) -> None:
        """Refuse a connection above the limit and close at once, because lingering would keep it open."""
        self._write_refusal(status, reason)
        self._end(linger=False)

    def _refuse(self, status: int, reason: str, explained: Response | None = None) -> None:
        self._write_refusal(status, reason, explained)
        self._end(linger=True)

    def _write_refusal(self, status: int, reason: str, explained: Response | None = None) -> None:
        self.state.counters.refusals[reason] += 1
        response = (explained or plain_response(status, reason)).with_defaults(self.state.default_headers)
        self.write(render_response(response, method=b"", http11=True, keep_alive=False))

    def _end(self, *, linger: bool) -> None:
        """Close. Linger over unread data: closing at once could reset the client before it reads."""
        self.held = b""
        if not linger or self.ended or self.transport.is_closing():
            self.transport.close()
            return
        self._lingering = True
        self.transport.write_eof()
        self.expire_in(self.state.timeouts.linger)
        self.resume_reading()

    def _fail_internally(self) -> None:
        if self._exchange is not None:
            self._exchange.fail_internally()
        else:
            self.state.counters.errors += 1
            self.transport.abort()
