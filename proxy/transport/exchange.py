"""One request and its response: routed, then handled as the route says."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from proxy.transport.bodies import BodyRefused, new_body
from proxy.transport.body_collector import BodyCollector
from proxy.transport.local_responses import StreamResponder, plain_response, release, render_response
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Collect, Forward, Response, Routed, Stream
from proxy.transport.upstream_exchange import UpstreamExchange

if TYPE_CHECKING:
    from proxy.transport.client_connection import ClientConnection

logger = logging.getLogger(__name__)

TOO_MANY_OF_ADDRESS = "too many connections from this address"
ROUTED_TYPES = (Forward, Response, Stream, Collect)


class Handler(Protocol):
    """Handles a routed request: an upstream, a stream, or the collector of a body."""

    def request_received(self, data: bytes) -> None:
        """Take more data from the client: of this request's body until it ends, then of later requests."""

    def request_ended(self) -> None:
        """Note that the client sends no more."""

    def client_blocked(self) -> None: ...

    def client_ready(self) -> None: ...

    def expire(self) -> None:
        """End the request: the client's deadline has passed."""

    def drain(self) -> None:
        """End soon, or at once if no end is in sight."""

    def stop(self) -> None:
        """Release everything: the request has failed or the client has left. May be called again."""


class Exchange:
    """Starts with a head; ends with `client.exchange_done` or the end of the connection."""

    __slots__ = ("_handler", "_routing", "body", "client", "head", "response_started", "state")

    def __init__(self, client: "ClientConnection", head: RequestHead) -> None:
        self.client = client
        self.state = client.state
        self.head = head
        self.body = new_body(head.block.framing, head.block.length)
        # After one status line there must not be another.
        self.response_started = False
        self._routing: asyncio.Future[Routed] | None = None
        self._handler: Handler | None = None

    def start(self) -> None:
        if not self.client.identify(self.head):
            self._refuse_connection(TOO_MANY_OF_ADDRESS)
            return
        routed = self.state.router.route(self.head, self.client.peer)
        if isinstance(routed, ROUTED_TYPES):
            self.dispatch(routed)
        else:
            self.dispatch_later(routed)

    # Called by the client connection.

    def request_received(self, data: bytes) -> None:
        if self._handler is None:
            self.client.hold(data)
        else:
            self._handler.request_received(data)

    def request_ended(self) -> None:
        """Note that the client sends no more; it still gets its response if the request is complete."""
        if self._handler is not None:
            self._handler.request_ended()

    def client_blocked(self) -> None:
        if self._handler is not None:
            self._handler.client_blocked()

    def client_ready(self) -> None:
        if self._handler is not None:
            self._handler.client_ready()

    def expire(self) -> None:
        if self._handler is not None:
            self._handler.expire()

    def drain(self) -> None:
        if self._handler is not None:
            self._handler.drain()

    def cancel(self) -> None:
        """Stop working on a response that cannot be delivered."""
        routing, self._routing = self._routing, None
        if routing is not None:
            routing.cancel()
        if self._handler is not None:
            self._handler.stop()

    # Routing.

    def dispatch_later(self, routing: Awaitable[Routed]) -> None:
        self._routing = asyncio.ensure_future(routing)
        self._routing.add_done_callback(self._routed)

    def dispatch(self, routed: Routed) -> None:
        """Handle the request as the route says; no response may have started."""
        collected = isinstance(self._handler, BodyCollector)
        if isinstance(routed, Response):
            self.respond(routed)
        elif collected and isinstance(routed, Forward | Collect):
            raise RuntimeError("the body has been read and cannot be forwarded or collected again")
        elif isinstance(routed, Collect):
            collector = self._handler = BodyCollector(self, routed)
            collector.start()
        elif not self.client.assign(routed.credential, routed.user):
            self._refuse_user(routed)
        elif isinstance(routed, Forward):
            upstream = self._handler = UpstreamExchange(self, routed)
            upstream.start()
        else:
            responder = self._handler = StreamResponder(self, routed)
            responder.start()

    def _routed(self, routing: asyncio.Future[Routed]) -> None:
        wanted, self._routing = self._routing is not None, None
        try:
            routed = routing.result()
            if wanted:
                self.dispatch(routed)
            else:
                release(routed, self.state)
        except (Exception, asyncio.CancelledError):
            if wanted:
                logger.exception("a request could not be routed")
                self.fail_internally()

    def _refuse_user(self, routed: Forward | Stream) -> None:
        release(routed, self.state)
        self._refuse_connection("too many connections of this user")

    def _refuse_connection(self, reason: str) -> None:
        self.state.counters.refusals[reason] += 1
        self.respond(plain_response(429, reason))

    # Responses.

    def respond(self, response: Response) -> None:
        """Send a response of the proxy; discard what has arrived of the request's body."""
        self.discard_body()
        self._respond(response, keep_alive=self.can_keep_alive())

    def fail(self, status: int, reason: str) -> None:
        """Send an error and close; only close if a response has started."""
        self.fail_with(plain_response(status, reason))

    def fail_with(self, response: Response) -> None:
        self.cancel()
        if self.response_started:
            self.client.abort()
        else:
            self._respond(response, keep_alive=False)

    def fail_internally(self) -> None:
        """End this connection after an error in the proxy; others are not affected."""
        self.state.counters.errors += 1
        self.fail(500, "internal error")

    def finish(self, *, keep_alive: bool, linger: bool) -> None:
        """Hand the connection back after the response."""
        # Break the reference cycle, or only the garbage collector could free the two.
        self._handler = None
        self.client.exchange_done(keep_alive=keep_alive, linger=linger)

    def _respond(self, response: Response, *, keep_alive: bool) -> None:
        http11 = self.head.block.version == b"HTTP/1.1"
        response = response.with_defaults(self.state.default_headers)
        rendered = render_response(response, method=self.head.method, http11=http11, keep_alive=keep_alive)
        self.response_started = True
        self.client.write(rendered)
        self.finish(keep_alive=keep_alive, linger=self.awaits_body())

    # The request's body.

    def awaits_body(self) -> bool:
        """Return whether part of the body has yet to arrive."""
        return self.body is not None and not self.body.done

    def can_keep_alive(self) -> bool:
        """Return whether the connection can serve another request after this one."""
        # An unread body could not be told apart from the next request.
        return not self.awaits_body() and self.client.can_keep_alive(self.head)

    def read_body(self, data: bytes) -> bytes:
        """Return the part of the data that belongs to the body; hold the rest. Fail if it is malformed."""
        if self.body is None:
            raise RuntimeError("the request has no body")
        try:
            passed, rest = self.body.split(data)
        except BodyRefused as refused:
            self.state.counters.refusals["body"] += 1
            self.fail(400, str(refused))
            return b""
        if rest:
            self.client.hold(rest)
        return passed

    def discard_body(self) -> None:
        """Discard what has arrived of the body."""
        if self.body is None:
            return
        try:
            _, rest = self.body.split(self.client.take())
        except BodyRefused:
            # The body has no end, so no request can follow it.
            return
        if rest:
            self.client.hold(rest)
