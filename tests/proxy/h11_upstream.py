"""An upstream that reads with somebody else's strict parser, h11, and remembers what it saw."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import h11

BROKEN_OFF = re.compile("closed connection|without sending complete|ConnectionClosed")
MAX_HEAD = 128 * 1024
PLAIN_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class Seen(NamedTuple):
    """One whole request."""

    method: bytes
    target: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    body: bytes


@dataclass
class Oracle:
    """What came on all connections; whatever h11 does not take is a violation."""

    answer: bytes = PLAIN_ANSWER
    closes: bool = False
    requests: list[Seen] = field(default_factory=list)
    begun: list[bytes] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    connections: set["OracleConnection"] = field(default_factory=set)

    async def listen(self) -> int:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: OracleConnection(self), "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._server.close()
        for connection in list(self.connections):
            connection.transport.abort()
        await self._server.wait_closed()

    def forget(self) -> None:
        self.requests.clear()
        self.begun.clear()
        self.violations.clear()


class OracleConnection(asyncio.Protocol):
    """Answers every whole request with the same bytes."""

    transport: asyncio.Transport

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._request: h11.Request | None = None
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._oracle.connections.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._oracle.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self._parser.receive_data(data)
        try:
            self._read()
        except h11.RemoteProtocolError as error:
            self._oracle.violations.append(f"{error}: {data!r}")
            self.transport.abort()

    def _read(self) -> None:
        while True:
            event = self._parser.next_event()
            if isinstance(event, h11.Request):
                self._request, self._body = event, b""
                self._oracle.begun.append(event.target)
            elif isinstance(event, h11.Data):
                self._body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self._answer()
            else:
                return

    def _answer(self) -> None:
        request = self._request
        assert request is not None
        fields = tuple((name, value) for name, value in request.headers)
        self._oracle.requests.append(Seen(request.method, request.target, fields, self._body))
        if self._parser.trailing_data[0]:
            self._oracle.violations.append(f"bytes after a request: {self._parser.trailing_data[0]!r}")
        self.transport.write(self._oracle.answer)
        if self._oracle.closes:
            self.transport.close()
        # As far as the parser is concerned, it has been answered.
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)


def read_answers(received: bytes, methods: Sequence[bytes]) -> tuple[list[int], bool]:
    """The final statuses in what a client received, and whether it ended after a whole answer."""
    statuses: list[int] = []
    for method in methods:
        if not received:
            break
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        parser.receive_data(received)
        parser.receive_data(b"")
        parser.send(h11.Request(method=method, target="/", headers=[("Host", "h")]))
        parser.send(h11.EndOfMessage())
        try:
            status = read_answer(parser)
        except h11.RemoteProtocolError as error:
            # The only fault that may be found in our answers: they break off where the upstream's did.
            if not BROKEN_OFF.search(str(error)):
                raise
            return statuses, False
        statuses.append(status)
        received = parser.trailing_data[0]
    assert received == b""
    return statuses, True


def read_answer(parser: h11.Connection) -> int:
    status = 0
    while True:
        event = parser.next_event()
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.EndOfMessage):
            return status
        else:
            assert isinstance(event, h11.InformationalResponse | h11.Data), event
