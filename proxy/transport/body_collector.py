"""A small body that the router wants to read before it decides."""

import math

from proxy.transport.bodies import new_body
from proxy.transport.routing import Collect
from proxy.transport.serving import Request

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BodyCollector:
    """Reads the whole body, then lets the request wait for the decision."""

    __slots__ = ("_collect", "_collected", "_request")

    def __init__(self, request: Request, collect: Collect) -> None:
        self._request = request
        self._collect = collect
        self._collected = bytearray()

    def begin(self) -> None:
        request, block = self._request, self._request.head.block
        request.body = new_body(block.framing, block.length, decode=True)
        if block.length > self._collect.limit:
            self._refuse()
        elif request.body is None:
            self._decide()
        else:
            self._read_on()

    def request_received(self, data: bytes) -> None:
        request = self._request
        if not request.is_owed():
            request.client.hold(data)
            return
        self._collected += request.cut(data)
        if request.answered:
            return
        if len(self._collected) > self._collect.limit:
            self._refuse()
        elif not request.is_owed():
            self._decide()

    def request_ended(self) -> None:
        if self._request.is_owed():
            self._request.fail(400, "truncated body")

    def client_blocked(self) -> None:
        """There is nothing to write yet."""

    def client_ready(self) -> None:
        """There is nothing to write yet."""

    def expire(self) -> None:
        self._request.core.counters.refusals["body timeout"] += 1
        self._request.fail(408, "the request's body did not come in time")

    def drain(self) -> None:
        """It ends by itself, and soon."""

    def stop(self) -> None:
        """There is nothing to let go of."""

    def _read_on(self) -> None:
        request, client = self._request, self._request.client
        # It is small: all of it has to be here in this time.
        client.wait(request.core.timeouts.body)
        if client.received:
            self.request_received(client.take())
        elif request.head.block.expects_continue:
            client.write(CONTINUE)
        if not request.answered and request.is_owed():
            client.resume_reading()
            if client.ended:
                self.request_ended()

    def _decide(self) -> None:
        request, client = self._request, self._request.client
        client.wait(math.inf)
        if not client.received:
            # Else nobody would see it if the client went away.
            client.resume_reading()
        request.wait_for(self._collect.then(bytes(self._collected)))

    def _refuse(self) -> None:
        self._request.core.counters.refusals["body too large"] += 1
        self._request.fail(413, "the request's body is too large")
