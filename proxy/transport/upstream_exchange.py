"""Forwards one request to an upstream, and its response to the client."""

import asyncio
import logging
from time import perf_counter
from typing import TYPE_CHECKING

from proxy.transport.bodies import BodyRefused
from proxy.transport.forwarded_head import asks_for_websocket
from proxy.transport.local_responses import release
from proxy.transport.response_head import ResponseRefused
from proxy.transport.response_relay import ResponseRelay
from proxy.transport.routing import Collect, Forward, Response, Stream
from proxy.transport.upstream_pool import Connected, UpstreamConnection, connect_upstream

if TYPE_CHECKING:
    from proxy.transport.exchange import Exchange

logger = logging.getLogger(__name__)

RETRYABLE_METHODS = frozenset({b"GET", b"HEAD", b"OPTIONS"})


class UpstreamExchange:
    """Lasts from the route to the end of the response, or until it becomes a tunnel."""

    __slots__ = (
        "_client", "_connecting", "_exchange", "_relay", "_retryable", "_route", "_sent_at", "_state",
        "_upstream",
    )  # fmt: skip

    def __init__(self, exchange: "Exchange", route: Forward) -> None:
        self._exchange = exchange
        self._client = exchange.client
        self._state = exchange.state
        self._route = route
        self._retryable = exchange.body is None and exchange.head.method in RETRYABLE_METHODS
        self._connecting: asyncio.Task[Connected | Response | Stream | Collect] | None = None
        self._relay: ResponseRelay | None = None
        self._sent_at = 0.0
        self._upstream: UpstreamConnection | None = None

    def start(self) -> None:
        route = self._route
        if route.observer is not None:
            route.observer.request(self._exchange.head)
        connection = self._state.pool.acquire(route, self._state.loop.time(), retryable=self._retryable)
        if connection is None:
            self._connect()
        else:
            self._send(connection)

    # Called by the exchange.

    def request_received(self, data: bytes) -> None:
        upstream = self._upstream
        if upstream is None or not self._exchange.awaits_body():
            self._client.hold(data)
        elif passed := self._exchange.read_body(data):
            upstream.transport.write(passed)
            self._extend_deadline(len(data))

    def request_ended(self) -> None:
        if self._upstream is not None and self._exchange.awaits_body():
            self._exchange.fail(400, "truncated body")
        elif self._relay is not None and self._relay.is_event_stream():
            # A listener that closes its sending side has left; a half-closed stream would stay open forever.
            self._client.abort()

    def client_blocked(self) -> None:
        if self._upstream is not None and not self._upstream.transport.is_closing():
            self._upstream.transport.pause_reading()

    def client_ready(self) -> None:
        if self._upstream is not None and not self._upstream.transport.is_closing():
            self._upstream.transport.resume_reading()

    def expire(self) -> None:
        exchange = self._exchange
        if exchange.awaits_body() and not exchange.response_started:
            self._state.counters.refusals["body timeout"] += 1
            exchange.fail(408, "the request's body did not arrive in time")
        else:
            self._state.counters.upstream_failures["answer timeout"] += 1
            exchange.fail(504, "the upstream did not respond in time")

    def drain(self) -> None:
        """Do nothing: the request ends by itself, and its response closes the connection."""

    def stop(self) -> None:
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()
        connection, self._upstream = self._upstream, None
        if connection is not None:
            connection.exchange = None
            connection.transport.abort()

    # Called by the upstream connection.

    def response_received(self, data: bytes) -> None:
        if self._sent_at:
            self._state.counters.upstream_latencies.observe(perf_counter() - self._sent_at)
            self._sent_at = 0.0
        try:
            self._forward(self._get_relay(), data)
        except (ResponseRefused, BodyRefused) as refused:
            self._state.counters.upstream_failures["malformed answer"] += 1
            self._exchange.fail(502, f"the upstream's response cannot be forwarded: {refused}")
        except Exception:
            logger.exception("a response could not be forwarded")
            self._exchange.fail_internally()

    def upstream_ended(self, error: Exception | None) -> None:
        connection, self._upstream = self._upstream, None
        relay = self._relay
        if connection is None or relay is None:
            return
        if relay.started:
            self._end_response(relay, error)
        elif connection.reused and self._retryable and not relay.has_received():
            # The next connection is new, so this happens only once.
            self._connect()
        else:
            self._state.counters.upstream_failures["no answer"] += 1
            self._exchange.fail_with(self._state.router.unreachable(self._exchange.head, self._route))

    def upstream_blocked(self) -> None:
        self._client.pause_reading()

    def upstream_ready(self) -> None:
        if self._exchange.awaits_body():
            # The client could not send while the upstream was not reading.
            self._reset_deadline()
            self._client.resume_reading()

    # The request.

    def _connect(self) -> None:
        state = self._state
        connecting = connect_upstream(
            self._exchange.head, self._route, state.pool, state.router, state.counters
        )
        self._connecting = state.loop.create_task(connecting)
        self._connecting.add_done_callback(self._connected)

    def _connected(self, connecting: asyncio.Task[Connected | Response | Stream | Collect]) -> None:
        wanted, self._connecting = self._connecting is not None, None
        try:
            outcome = connecting.result()
            if wanted:
                self._use(outcome)
            elif isinstance(outcome, Connected):
                outcome.connection.transport.abort()
            else:
                release(outcome, self._state)
        except (Exception, asyncio.CancelledError):
            if wanted:
                logger.exception("a request could not be sent")
                self._exchange.fail_internally()

    def _use(self, outcome: Connected | Response | Stream | Collect) -> None:
        if isinstance(outcome, Connected):
            self._route = outcome.route
            self._send(outcome.connection)
        else:
            self._exchange.dispatch(outcome)

    def _send(self, connection: UpstreamConnection) -> None:
        exchange, client, route = self._exchange, self._client, self._route
        self._upstream, connection.exchange = connection, self
        self._relay = ResponseRelay(exchange.head, route, self._state.response_heads, exchange.can_keep_alive)
        start = self._state.forwarded_heads.request_head(exchange.head, route, client.peer)
        if client.held and exchange.awaits_body():
            start += exchange.read_body(client.take())
            if exchange.response_started:
                # The body was refused, so nothing of the request is sent.
                return
        if exchange.body is not None and not client.held:
            # Before the write: if the upstream cannot take all of it, reading pauses again.
            client.resume_reading()
        self._sent_at = perf_counter()
        connection.transport.write(start)
        self._reset_deadline()
        if client.ended:
            self.request_ended()

    def _reset_deadline(self) -> None:
        timeouts = self._state.timeouts
        self._client.expire_in(timeouts.body if self._exchange.awaits_body() else timeouts.response)

    def _extend_deadline(self, received: int) -> None:
        """Extend the deadline by the time that these bytes may take at the lowest allowed rate."""
        if self._exchange.awaits_body():
            seconds = received / self._state.limits.body_bytes_per_second
            self._client.extend(seconds, at_most=self._state.timeouts.body)
        else:
            self._client.expire_in(self._state.timeouts.response)

    # The response.

    def _forward(self, relay: ResponseRelay, data: bytes) -> None:
        passed = relay.receive(data)
        self._exchange.response_started = relay.started
        if passed:
            self._client.write(passed)
        if relay.done:
            self._finish(relay)
        elif relay.switching is not None:
            self._switch(relay)
        elif relay.started:
            self._client.expire_in(self._state.timeouts.stream)
            if self._client.ended:
                self.request_ended()

    def _finish(self, relay: ResponseRelay) -> None:
        connection, self._upstream = self._upstream, None
        awaits_body = self._exchange.awaits_body()
        if connection is not None:
            connection.exchange = None
            if relay.surplus or awaits_body or not relay.upstream_keep_alive:
                connection.transport.abort()
            else:
                if self._client.blocked:
                    connection.transport.resume_reading()
                self._state.pool.release(connection, self._state.loop.time())
        self._exchange.finish(keep_alive=relay.keep_alive, linger=awaits_body)

    def _end_response(self, relay: ResponseRelay, error: Exception | None) -> None:
        if error is None and relay.ends_with_connection():
            self._finish(relay)
        else:
            self._state.counters.upstream_failures["truncated answer"] += 1
            self._client.abort()

    def _switch(self, relay: ResponseRelay) -> None:
        response, connection = relay.switching, self._upstream
        if response is None or connection is None:
            raise RuntimeError("there is no connection to switch to")
        if not asks_for_websocket(self._exchange.head) or response.upgrade != b"websocket":
            raise ResponseRefused("an upgrade that the client did not ask for")
        self._upstream = None
        self._client.write(response.render_upgrade() + relay.surplus)
        self._client.become_tunnel(self._route, connection.transport)

    def _get_relay(self) -> ResponseRelay:
        if self._relay is None:
            raise RuntimeError("a response came before the request was sent")
        return self._relay
