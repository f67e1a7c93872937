"""One request and its answer, between a client and an upstream."""

import asyncio
import logging

from proxy.answers import AnswerRefused, plain_answer, render_answer
from proxy.bodies import Body, BodyRefused, new_body
from proxy.client import Client
from proxy.forwarding import asks_for_websocket
from proxy.heads import RequestHead
from proxy.opening import Opened, open_upstream
from proxy.reply import Reply
from proxy.routing import Answer, Forward, Routed
from proxy.upstream import UpstreamConnection

logger = logging.getLogger(__name__)

REPEATABLE_METHODS = frozenset({b"GET", b"HEAD", b"OPTIONS"})


class Exchange:
    """Begins with a head, ends with `client.done` or the end of the client."""

    __slots__ = (
        "_answered", "_body", "_client", "_core", "_head", "_repeatable", "_reply", "_route",
        "_task", "_upstream",
    )  # fmt: skip

    def __init__(self, client: Client, head: RequestHead) -> None:
        self._client = client
        self._core = client.core
        self._head = head
        self._body = new_body(head.block.framing, head.block.length)
        self._repeatable = self._body is None and head.method in REPEATABLE_METHODS
        # Once a status line went out there must not be another one.
        self._answered = False
        self._reply: Reply | None = None
        self._route: Forward | None = None
        self._task: asyncio.Future[Routed] | asyncio.Task[Opened | Answer] | None = None
        self._upstream: UpstreamConnection | None = None

    def begin(self) -> None:
        routed = self._core.router.route(self._head, self._client.peer)
        if isinstance(routed, Forward):
            self._forward(routed)
        elif isinstance(routed, Answer):
            self.answer(routed)
        else:
            self._task = asyncio.ensure_future(routed)
            self._task.add_done_callback(self._routed)

    # From the client.

    def request_received(self, data: bytes) -> None:
        """More from the client: of this body if it has not ended, else of what comes later."""
        body, upstream = self._body, self._upstream
        if body is None or body.done or upstream is None:
            self._client.hold(data)
        elif passed := self._cut_request(body, data):
            upstream.transport.write(passed)
            self._expect_more()

    def request_ended(self) -> None:
        """The client sends no more; it still gets its answer if the request is whole."""
        if self._upstream is not None and self._is_owed():
            self.fail(400, "truncated body")

    def client_blocked(self) -> None:
        if self._upstream is not None and not self._upstream.transport.is_closing():
            self._upstream.transport.pause_reading()

    def client_ready(self) -> None:
        if self._upstream is not None and not self._upstream.transport.is_closing():
            self._upstream.transport.resume_reading()

    def expire(self) -> None:
        if self._is_owed() and not self._answered:
            self._core.counters.refusals["body timeout"] += 1
            self.fail(408, "the request's body did not come in time")
        else:
            self._core.counters.upstream_failures["answer timeout"] += 1
            self.fail(504, "the upstream did not answer in time")

    def abandon(self) -> None:
        """The client is gone: nobody waits for the answer."""
        if self._task is not None:
            self._task.cancel()
        self._drop_upstream()

    # From the upstream.

    def answer_received(self, data: bytes) -> None:
        try:
            self._pass_on(self._get_reply(), data)
        except (AnswerRefused, BodyRefused) as refused:
            self._core.counters.upstream_failures["malformed answer"] += 1
            self.fail(502, f"the upstream's answer cannot be passed on: {refused}")
        except Exception:
            logger.exception("an answer could not be passed on")
            self.broke()

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
            self.fail(502, "the upstream closed the connection without an answer")

    def upstream_blocked(self) -> None:
        self._client.pause_reading()

    def upstream_ready(self) -> None:
        if self._is_owed():
            self._client.resume_reading()

    # The way of a request.

    def _routed(self, routing: asyncio.Future[Routed]) -> None:
        self._task = None
        if not routing.cancelled():
            try:
                self._follow(routing.result())
            except Exception:
                logger.exception("a request could not be routed")
                self.broke()

    def _follow(self, routed: Routed) -> None:
        if isinstance(routed, Forward):
            self._forward(routed)
        else:
            self.answer(routed)

    def _forward(self, route: Forward) -> None:
        if not self._client.charge(route.credential):
            self._core.counters.refusals["connections of one credential"] += 1
            self.answer(plain_answer(429, "too many connections"))
            return
        self._route = route
        if route.observer is not None:
            route.observer.request(self._head)
        connection = self._core.pool.take(route, self._core.loop.time(), repeatable=self._repeatable)
        if connection is None:
            self._open()
        else:
            self._send(route, connection)

    def _open(self) -> None:
        if self._route is None:
            raise RuntimeError("there is no route to open")
        core = self._core
        opening = open_upstream(self._head, self._route, core.pool, core.router, core.counters)
        self._task = core.loop.create_task(opening)
        self._task.add_done_callback(self._opened)

    def _opened(self, opening: asyncio.Task[Opened | Answer]) -> None:
        self._task = None
        if opening.cancelled():
            return
        try:
            opened = opening.result()
            if isinstance(opened, Answer):
                self.answer(opened)
            else:
                self._send(opened.route, opened.connection)
        except Exception:
            logger.exception("a request could not be sent")
            self.broke()

    def _send(self, route: Forward, connection: UpstreamConnection) -> None:
        core, client = self._core, self._client
        self._route, self._upstream, connection.sink = route, connection, self
        self._reply = Reply(self._head, route.drop_cookies, core.limits.answer_head_bytes, self._may_stay)
        start = core.forwarding.request_head(self._head, route, client.peer)
        if self._body is not None and client.received:
            start += self._cut_request(self._body, client.take())
            if self._answered:
                # The body was refused: nothing of the request goes out.
                return
        connection.transport.write(start)
        self._expect_more()
        if self._is_owed():
            client.resume_reading()
            if client.ended:
                self.request_ended()

    def _cut_request(self, body: Body, data: bytes) -> bytes:
        try:
            passed, rest = body.cut(data)
        except BodyRefused as refused:
            self._core.counters.refusals["body"] += 1
            self.fail(400, str(refused))
            return b""
        if rest:
            self._client.hold(rest)
        return passed

    # The way of an answer.

    def _pass_on(self, reply: Reply, data: bytes) -> None:
        passed = reply.receive(data)
        self._answered = reply.began
        if passed:
            self._client.write(passed)
        if reply.done:
            self._finish(reply)
        elif reply.switching is not None:
            self._switch(reply)
        elif reply.began:
            self._client.wait(self._core.timeouts.stream)

    def _finish(self, reply: Reply) -> None:
        connection, self._upstream = self._upstream, None
        owed = self._is_owed()
        if connection is not None:
            connection.sink = None
            if reply.surplus or owed or not reply.upstream_stays:
                connection.transport.abort()
            else:
                if self._client.blocked:
                    connection.transport.resume_reading()
                self._core.pool.give_back(connection, self._core.loop.time())
        self._client.done(keep_alive=reply.keep_alive, linger=owed)

    def _end_answer(self, reply: Reply, error: Exception | None) -> None:
        if error is None and reply.ends_with_connection():
            self._finish(reply)
        else:
            self._core.counters.upstream_failures["truncated answer"] += 1
            self._client.abort()

    def _switch(self, reply: Reply) -> None:
        answer, connection, route = reply.switching, self._upstream, self._route
        if answer is None or connection is None or route is None:
            raise RuntimeError("there is nothing to switch to")
        if not asks_for_websocket(self._head) or answer.upgrade != b"websocket":
            raise AnswerRefused("an upgrade that was not asked for")
        self._upstream = None
        self._client.write(answer.render_upgrade() + reply.surplus)
        self._client.become_tunnel(route, connection.transport)

    def _may_stay(self) -> bool:
        # A body that is still to come could not be told from the next request if nobody reads it.
        return not self._is_owed() and self._client.may_stay(self._head)

    # Answers of our own, and other ends.

    def answer(self, answer: Answer) -> None:
        """Answer without the upstream; a request's body that is here already is thrown away."""
        self._discard_request()
        self._answer(answer, keep_alive=self._may_stay())

    def fail(self, status: int, reason: str) -> None:
        """Say so and close, or only close if an answer has begun."""
        self._drop_upstream()
        if self._answered:
            self._client.abort()
        else:
            self._answer(plain_answer(status, reason), keep_alive=False)

    def broke(self) -> None:
        """After an error of ours: this connection pays for it, no other one does."""
        self._core.counters.errors += 1
        self.fail(500, "internal error")

    def _answer(self, answer: Answer, *, keep_alive: bool) -> None:
        modern = self._head.block.version == b"HTTP/1.1"
        rendered = render_answer(answer, method=self._head.method, modern=modern, keep_alive=keep_alive)
        self._answered = True
        self._client.write(rendered)
        self._client.done(keep_alive=keep_alive, linger=self._is_owed())

    def _discard_request(self) -> None:
        if self._body is None:
            return
        try:
            _, rest = self._body.cut(self._client.take())
        except BodyRefused:
            # It has not ended, so nothing can follow it.
            return
        if rest:
            self._client.hold(rest)

    def _drop_upstream(self) -> None:
        connection, self._upstream = self._upstream, None
        if connection is not None:
            connection.sink = None
            connection.transport.abort()

    # Small questions.

    def _is_owed(self) -> bool:
        return self._body is not None and not self._body.done

    def _expect_more(self) -> None:
        timeouts = self._core.timeouts
        self._client.wait(timeouts.body if self._is_owed() else timeouts.answer)

    def _get_reply(self) -> Reply:
        if self._reply is None:
            raise RuntimeError("an answer came before the request was sent")
        return self._reply
