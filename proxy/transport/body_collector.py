"""Reads a small request body for a router that needs it to decide."""

import math
from typing import TYPE_CHECKING

from proxy.transport.bodies import new_body
from proxy.transport.routing import Collect

if TYPE_CHECKING:
    from proxy.transport.exchange import Exchange

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BodyCollector:
    """Reads the whole body, then dispatches the request as the router decides."""

    __slots__ = ("_collect", "_collected", "_exchange")

    def __init__(self, exchange: "Exchange", collect: Collect) -> None:
        self._exchange = exchange
        self._collect = collect
        self._collected = bytearray()

    def start(self) -> None:
        exchange, block = self._exchange, self._exchange.head.block
        exchange.body = new_body(block.framing, block.length, decode=True)
        if block.length > self._collect.limit:
            self._refuse()
        elif exchange.body is None:
            self._decide()
        else:
            self._read_on()

    def request_received(self, data: bytes) -> None:
        exchange = self._exchange
        if not exchange.awaits_body():
            exchange.client.hold(data)
            return
        self._collected += exchange.read_body(data)
        if exchange.response_started:
            return
        if len(self._collected) > self._collect.limit:
            self._refuse()
        elif not exchange.awaits_body():
            self._decide()

    def request_ended(self) -> None:
        if self._exchange.awaits_body():
            self._exchange.fail(400, "truncated body")

    def client_blocked(self) -> None:
        """Do nothing: there is no response yet."""

    def client_ready(self) -> None:
        """Do nothing: there is no response yet."""

    def expire(self) -> None:
        self._exchange.state.counters.refusals["body timeout"] += 1
        self._exchange.fail(408, "the request's body did not arrive in time")

    def drain(self) -> None:
        """Do nothing: the request ends soon anyway."""

    def stop(self) -> None:
        """Do nothing: there is nothing to release."""

    def _read_on(self) -> None:
        exchange, client = self._exchange, self._exchange.client
        # The body is small, so this is enough time for all of it.
        client.expire_in(exchange.state.timeouts.body)
        if client.held:
            self.request_received(client.take())
        elif exchange.head.block.expects_continue:
            client.write(CONTINUE)
        if not exchange.response_started and exchange.awaits_body():
            client.resume_reading()
            if client.ended:
                self.request_ended()

    def _decide(self) -> None:
        exchange, client = self._exchange, self._exchange.client
        client.expire_in(math.inf)
        if not client.held:
            # Reading is the only way to notice that the client has left.
            client.resume_reading()
        exchange.dispatch_later(self._collect.then(bytes(self._collected)))

    def _refuse(self) -> None:
        self._exchange.state.counters.refusals["body too large"] += 1
        self._exchange.fail(413, "the request's body is too large")
