"""One request and its answer: routed, then served by whoever the route names, or answered at once."""

import asyncio
import logging
from collections.abc import Awaitable

from proxy.transport.bodies import BodyRefused, new_body
from proxy.transport.body_collector import BodyCollector
from proxy.transport.client import Client
from proxy.transport.local_responses import plain_response, render_response
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Collect, Forward, Response, Routed, Stream
from proxy.transport.serving import Service
from proxy.transport.stream_service import StreamService, let_go
from proxy.transport.upstream_exchange import UpstreamExchange

logger = logging.getLogger(__name__)

KINDS = (Forward, Response, Stream, Collect)


class Exchange:
    """Begins with a head, ends with `client.done` or the end of the client."""

    __slots__ = ("_routing", "_service", "answered", "body", "client", "core", "head")

    def __init__(self, client: Client, head: RequestHead) -> None:
        self.client = client
        self.core = client.core
        self.head = head
        self.body = new_body(head.block.framing, head.block.length)
        self.answered = False
        self._routing: asyncio.Future[Routed] | None = None
        self._service: Service | None = None

    def begin(self) -> None:
        routed = self.core.router.route(self.head, self.client.peer)
        if isinstance(routed, KINDS):
            self.follow(routed)
        else:
            self.wait_for(routed)

    # From the client.

    def request_received(self, data: bytes) -> None:
        if self._service is None:
            self.client.hold(data)
        else:
            self._service.request_received(data)

    def request_ended(self) -> None:
        """The client sends no more; it still gets its answer if the request is whole."""
        if self._service is not None:
            self._service.request_ended()

    def client_blocked(self) -> None:
        if self._service is not None:
            self._service.client_blocked()

    def client_ready(self) -> None:
        if self._service is not None:
            self._service.client_ready()

    def expire(self) -> None:
        if self._service is not None:
            self._service.expire()

    def drain(self) -> None:
        if self._service is not None:
            self._service.drain()

    def abandon(self) -> None:
        """Nobody waits for the answer any more."""
        routing, self._routing = self._routing, None
        if routing is not None:
            routing.cancel()
        if self._service is not None:
            self._service.stop()

    # Where it goes.

    def wait_for(self, routing: Awaitable[Routed]) -> None:
        """Follow what comes of it."""
        self._routing = asyncio.ensure_future(routing)
        self._routing.add_done_callback(self._routed)

    def follow(self, routed: Routed) -> None:
        collected = isinstance(self._service, BodyCollector)
        if isinstance(routed, Response):
            self.answer(routed)
        elif collected and isinstance(routed, Forward | Collect):
            raise RuntimeError("the body has been read: it cannot be sent on or read again")
        elif isinstance(routed, Collect):
            collecting = self._service = BodyCollector(self, routed)
            collecting.begin()
        elif not self.client.charge(routed.credential, routed.holder):
            self._turn_away(routed)
        elif isinstance(routed, Forward):
            passage = self._service = UpstreamExchange(self, routed)
            passage.begin()
        else:
            streaming = self._service = StreamService(self, routed)
            streaming.begin()

    def _routed(self, routing: asyncio.Future[Routed]) -> None:
        wanted, self._routing = self._routing is not None, None
        try:
            routed = routing.result()
            if wanted:
                self.follow(routed)
            else:
                let_go(routed, self.core)
        except (Exception, asyncio.CancelledError):
            if wanted:
                logger.exception("a request could not be routed")
                self.broke()

    def _turn_away(self, routed: Forward | Stream) -> None:
        self.core.counters.refusals["connections of one holder"] += 1
        let_go(routed, self.core)
        self.answer(plain_response(429, "too many connections"))

    # Answers of our own, and other ends.

    def answer(self, answer: Response) -> None:
        """Answer without the upstream; a request's body that is here already is thrown away."""
        self.discard_body()
        self._answer(answer, keep_alive=self.may_stay())

    def fail(self, status: int, reason: str) -> None:
        self.fail_with(plain_response(status, reason))

    def fail_with(self, answer: Response) -> None:
        self.abandon()
        if self.answered:
            self.client.abort()
        else:
            self._answer(answer, keep_alive=False)

    def broke(self) -> None:
        self.core.counters.errors += 1
        self.fail(500, "internal error")

    def finish(self, *, keep_alive: bool, linger: bool) -> None:
        # They know each other: without this, only the garbage collector could end them.
        self._service = None
        self.client.done(keep_alive=keep_alive, linger=linger)

    def _answer(self, answer: Response, *, keep_alive: bool) -> None:
        modern = self.head.block.version == b"HTTP/1.1"
        rendered = render_response(answer, method=self.head.method, modern=modern, keep_alive=keep_alive)
        self.answered = True
        self.client.write(rendered)
        self.finish(keep_alive=keep_alive, linger=self.is_owed())

    # The body.

    def is_owed(self) -> bool:
        return self.body is not None and not self.body.done

    def may_stay(self) -> bool:
        # A body that is still to come could not be told from the next request if nobody reads it.
        return not self.is_owed() and self.client.may_stay(self.head)

    def cut(self, data: bytes) -> bytes:
        if self.body is None:
            raise RuntimeError("there is no body to cut")
        try:
            passed, rest = self.body.cut(data)
        except BodyRefused as refused:
            self.core.counters.refusals["body"] += 1
            self.fail(400, str(refused))
            return b""
        if rest:
            self.client.hold(rest)
        return passed

    def discard_body(self) -> None:
        if self.body is None:
            return
        try:
            _, rest = self.body.cut(self.client.take())
        except BodyRefused:
            # It has not ended, so nothing can follow it.
            return
        if rest:
            self.client.hold(rest)
