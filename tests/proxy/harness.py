"""A proxy on uvloop in its own thread, with raw sockets on both sides."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import uvloop

from codehub.ports import Upstream
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import ActivityObserver, Forward, Response, Routed
from proxy.transport.server import ProxyServer
from proxy.transport.server_state import Edge, Limits, Timeouts
from testkit.waiting import DEADLINE_SECONDS, until
from tests.proxy.raw_sockets import RawConnection, RawUpstream

T = TypeVar("T")


class ScriptedRouter:
    """Forwards everything to one upstream; a test can change the route or decide itself."""

    def __init__(self, upstream: Upstream) -> None:
        self.forward = Forward(
            upstream, pool_key="workspace", target=b"/", drop_cookies=(b"codehub_session",)
        )
        self.decide: Callable[[RequestHead], Routed | Awaitable[Routed]] | None = None
        self.decide_again: Callable[[RequestHead], Routed] | None = None
        self.heads: list[RequestHead] = []
        self.peers: list[str] = []
        self.reroutes = 0

    def route(self, head: RequestHead, peer: str) -> Routed | Awaitable[Routed]:
        self.heads.append(head)
        self.peers.append(peer)
        if self.decide is not None:
            return self.decide(head)
        return replace(self.forward, target=head.target)

    async def route_again(self, head: RequestHead, failed: Forward) -> Routed:
        self.reroutes += 1
        return failed if self.decide_again is None else self.decide_again(head)

    def explain_too_large(self, start: bytes) -> Response | None:
        del start
        return None

    def unreachable(self, head: RequestHead, failed: Forward) -> Response:
        return Response(502, body=b"unreachable: " + head.target + failed.target)

    def change(self, **changes: Any) -> None:  # noqa: ANN401 - any field of a route
        self.forward = replace(self.forward, **changes)


class RecordingObserver(ActivityObserver):
    """Records requests and messages."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.messages: list[tuple[int, int, bytes]] = []

    def request(self, head: RequestHead) -> None:
        self.requests.append(head.target)

    def message(self, opcode: int, length: int, start: bytes) -> None:
        self.messages.append((opcode, length, start))

    def is_saturated(self) -> bool:
        return False


class Harness:
    """A proxy and its upstream; `close` fails if the proxy's event loop reported an exception."""

    def __init__(self) -> None:
        self.upstream = RawUpstream()
        self.router = ScriptedRouter(Upstream("127.0.0.1", self.upstream.port, keep_prefix=True))
        self.escaped: list[dict[str, Any]] = []
        self._loop = uvloop.new_event_loop()
        self._loop.set_exception_handler(lambda _loop, context: self.escaped.append(context))
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._clients: list[RawConnection] = []
        self.server: ProxyServer
        self.port = 0

    def start(
        self,
        limits: Limits | None = None,
        timeouts: Timeouts | None = None,
        edge: Edge = Edge(scheme="https"),  # noqa: B008 - frozen
    ) -> None:
        async def start() -> None:
            self.server = ProxyServer(self.router, limits, timeouts, edge)
            self.port = await self.server.listen("127.0.0.1", 0)

        self.run(start())

    def run(self, work: Coroutine[None, None, T]) -> T:
        """Run a coroutine in the proxy's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE_SECONDS)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function in the proxy's loop."""

        async def call() -> T:
            return function()

        return self.run(call())

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until the condition holds in the proxy's loop."""

        async def holds() -> bool:
            return condition()

        asyncio.run_coroutine_threadsafe(until(holds, what), self._loop).result()

    def connect(self) -> RawConnection:
        connection = RawConnection(socket.create_connection(("127.0.0.1", self.port)))
        self._clients.append(connection)
        return connection

    def exchange(self, request: bytes, response: bytes) -> tuple[bytes, bytes]:
        """Exchange a request without a body; return what the upstream and the client received."""
        client = self.connect()
        client.send(request)
        upstream = self.upstream.accept()
        received = upstream.receive_head()
        upstream.send(response)
        upstream.close()
        client.half_close()
        return received, client.receive_rest()

    def refused(self, request: bytes) -> bytes:
        """Return the response to a request that must not reach an upstream."""
        client = self.connect()
        client.send(request)
        response = client.receive_rest()
        assert self.upstream.is_untouched()
        client.close()
        return response

    def drain(self, deadline: float = 0) -> None:
        self.run(self.server.drain(deadline))

    def close(self) -> None:
        if self.port:
            self.drain()
        for client in self._clients:
            client.close()
        self.upstream.close()
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        assert self.escaped == []
