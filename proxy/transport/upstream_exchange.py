"""A request that an upstream serves: sent there, its answer passed on as it comes."""

import asyncio
import logging
from time import perf_counter

from proxy.transport.bodies import BodyRefused
from proxy.transport.forwarded_head import asks_for_websocket
from proxy.transport.response_head import ResponseRefused
from proxy.transport.response_relay import ResponseRelay
from proxy.transport.routing import Collect, Forward, Response, Stream
from proxy.transport.serving import Request
from proxy.transport.stream_service import let_go
from proxy.transport.upstream_connect import Opened, open_upstream
from proxy.transport.upstream_pool import UpstreamConnection

logger = logging.getLogger(__name__)

REPEATABLE_METHODS = frozenset({b"GET", b"HEAD", b"OPTIONS"})


class UpstreamExchange:
    """From a route to the end of the answer, or to the tunnel that it becomes."""

    __slots__ = (
        "_client", "_core", "_opening", "_repeatable", "_reply", "_request", "_route", "_sent_at",
        "_upstream",
    )  # fmt: skip

    def __init__(self, request: Request, route: Forward) -> None:
        self._request = request
        self._client = request.client
        self._core = request.core
        self._route = route
        self._repeatable = request.body is None and request.head.method in REPEATABLE_METHODS
        self._opening: asyncio.Task[Opened | Response | Stream | Collect] | None = None
        self._reply: ResponseRelay | None = None
        self._sent_at = 0.0
        self._upstream: UpstreamConnection | None = None

    def begin(self) -> None:
        route = self._route
        if route.observer is not None:
            route.observer.request(self._request.head)
        connection = self._core.pool.take(route, self._core.loop.time(), repeatable=self._repeatable)
        if connection is None:
            self._open()
        else:
            self._send(connection)

    # From the client.

    def request_received(self, data: bytes) -> None:
        upstream = self._upstream
        if upstream is None or not self._request.is_owed():
            self._client.hold(data)
        elif passed := self._request.cut(data):
            upstream.transport.write(passed)
            self._expect_more()

    def request_ended(self) -> None:
        if self._upstream is not None and self._request.is_owed():
            self._request.fail(400, "truncated body")
        elif self._reply is not None and self._reply.is_event_stream():
            # Who listens to one and sends no more has gone: half an end would keep it open for nobody.
            self._client.abort()

    def client_blocked(self) -> None:
        if self._upstream is not None and not self._upstream.transport.is_closing():
            self._upstream.transport.pause_reading()

    def client_ready(self) -> None:
        if self._upstream is not None and not self._upstream.transport.is_closing():
            self._upstream.transport.resume_reading()

    def expire(self) -> None:
        request = self._request
        if request.is_owed() and not request.answered:
            self._core.counters.refusals["body timeout"] += 1
            request.fail(408, "the request's body did not come in time")
        else:
            self._core.counters.upstream_failures["answer timeout"] += 1
            request.fail(504, "the upstream did not answer in time")

    def drain(self) -> None:
        """It ends by itself, and its answer says that the connection does."""

    def stop(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
        connection, self._upstream = self._upstream, None
        if connection is not None:
            connection.sink = None
            connection.transport.abort()

    # From the upstream.

    def answer_received(self, data: bytes) -> None:
        if self._sent_at:
            self._core.counters.upstream_latencies.observe(perf_counter() - self._sent_at)
            self._sent_at = 0.0
        try:
            self._pass_on(self._get_reply(), data)
        except (ResponseRefused, BodyRefused) as refused:
            self._core.counters.upstream_failures["malformed answer"] += 1
            self._request.fail(502, f"the upstream's answer cannot be passed on: {refused}")
        except Exception:
            logger.exception("an answer could not be passed on")
            self._request.broke()

    def upstream_ended(self, error: Exception | None) -> None:
        connection, self._upstream = self._upstream, None
        reply = self._reply
        if connection is None or reply is None:
            return
        if reply.began:
            self._end_answer(reply, error)
        elif connection.reused and self._repeatable and not reply.heard():
            # The next one is new, so this happens only once.
            self._open()
        else:
            self._core.counters.upstream_failures["no answer"] += 1
            self._request.fail_with(self._core.router.unreachable(self._request.head, self._route))

    def upstream_blocked(self) -> None:
        self._client.pause_reading()

    def upstream_ready(self) -> None:
        if self._request.is_owed():
            self._client.resume_reading()

    # The way of the request.

    def _open(self) -> None:
        core = self._core
        opening = open_upstream(self._request.head, self._route, core.pool, core.router, core.counters)
        self._opening = core.loop.create_task(opening)
        self._opening.add_done_callback(self._opened)

    def _opened(self, opening: asyncio.Task[Opened | Response | Stream | Collect]) -> None:
        wanted, self._opening = self._opening is not None, None
        try:
            opened = opening.result()
            if wanted:
                self._use(opened)
            elif isinstance(opened, Opened):
                opened.connection.transport.abort()
            else:
                let_go(opened, self._core)
        except (Exception, asyncio.CancelledError):
            if wanted:
                logger.exception("a request could not be sent")
                self._request.broke()

    def _use(self, opened: Opened | Response | Stream | Collect) -> None:
        if isinstance(opened, Opened):
            self._route = opened.route
            self._send(opened.connection)
        else:
            self._request.follow(opened)

    def _send(self, connection: UpstreamConnection) -> None:
        request, client, route = self._request, self._client, self._route
        self._upstream, connection.sink = connection, self
        self._reply = ResponseRelay(request.head, route, self._core.answers, request.may_stay)
        start = self._core.forwarding.request_head(request.head, route, client.peer)
        if client.received and request.is_owed():
            start += request.cut(client.take())
            if request.answered:
                # The body was refused: nothing of the request goes out.
                return
        if request.body is not None and not client.received:
            # Before the write: if the upstream does not take all of it, reading stops again.
            client.resume_reading()
        self._sent_at = perf_counter()
        connection.transport.write(start)
        self._expect_more()
        if client.ended:
            self.request_ended()

    def _expect_more(self) -> None:
        timeouts = self._core.timeouts
        self._client.wait(timeouts.body if self._request.is_owed() else timeouts.answer)

    # The way of the answer.

    def _pass_on(self, reply: ResponseRelay, data: bytes) -> None:
        passed = reply.receive(data)
        self._request.answered = reply.began
        if passed:
            self._client.write(passed)
        if reply.done:
            self._finish(reply)
        elif reply.switching is not None:
            self._switch(reply)
        elif reply.began:
            self._client.wait(self._core.timeouts.stream)
            if self._client.ended:
                self.request_ended()

    def _finish(self, reply: ResponseRelay) -> None:
        connection, self._upstream = self._upstream, None
        owed = self._request.is_owed()
        if connection is not None:
            connection.sink = None
            if reply.surplus or owed or not reply.upstream_stays:
                connection.transport.abort()
            else:
                if self._client.blocked:
                    connection.transport.resume_reading()
                self._core.pool.give_back(connection, self._core.loop.time())
        self._request.finish(keep_alive=reply.keep_alive, linger=owed)

    def _end_answer(self, reply: ResponseRelay, error: Exception | None) -> None:
        if error is None and reply.ends_with_connection():
            self._finish(reply)
        else:
            self._core.counters.upstream_failures["truncated answer"] += 1
            self._client.abort()

    def _switch(self, reply: ResponseRelay) -> None:
        answer, connection = reply.switching, self._upstream
        if answer is None or connection is None:
            raise RuntimeError("there is nothing to switch to")
        if not asks_for_websocket(self._request.head) or answer.upgrade != b"websocket":
            raise ResponseRefused("an upgrade that was not asked for")
        self._upstream = None
        self._client.write(answer.render_upgrade() + reply.surplus)
        self._client.become_tunnel(self._route, connection.transport)

    def _get_reply(self) -> ResponseRelay:
        if self._reply is None:
            raise RuntimeError("an answer came before the request was sent")
        return self._reply
