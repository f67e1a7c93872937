"""An upstream that parses requests strictly with h11 and records them."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import h11

TRUNCATED = re.compile("closed connection|without sending complete|ConnectionClosed")
MAX_HEAD = 128 * 1024
PLAIN_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class Seen(NamedTuple):
    """One complete request."""

    method: bytes
    target: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    body: bytes


@dataclass
class H11Upstream:
    """Records the requests of all connections; what h11 refuses is a violation."""

    response: bytes = PLAIN_RESPONSE
    closes: bool = False
    requests: list[Seen] = field(default_factory=list)
    started: list[bytes] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    connections: set["H11UpstreamConnection"] = field(default_factory=set)

    async def listen(self) -> int:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: H11UpstreamConnection(self), "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._server.close()
        for connection in list(self.connections):
            connection.transport.abort()
        await self._server.wait_closed()

    def forget(self) -> None:
        self.requests.clear()
        self.started.clear()
        self.violations.clear()


class H11UpstreamConnection(asyncio.Protocol):
    """Responds to every complete request with the same bytes."""

    transport: asyncio.Transport

    def __init__(self, h11_upstream: H11Upstream) -> None:
        self._upstream = h11_upstream
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._request: h11.Request | None = None
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._upstream.connections.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._upstream.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self._parser.receive_data(data)
        try:
            self._read()
        except h11.RemoteProtocolError as error:
            self._upstream.violations.append(f"{error}: {data!r}")
            self.transport.abort()

    def _read(self) -> None:
        while True:
            event = self._parser.next_event()
            if isinstance(event, h11.Request):
                self._request, self._body = event, b""
                self._upstream.started.append(event.target)
            elif isinstance(event, h11.Data):
                self._body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self._respond()
            else:
                return

    def _respond(self) -> None:
        request = self._request
        assert request is not None
        fields = tuple((name, value) for name, value in request.headers)
        self._upstream.requests.append(Seen(request.method, request.target, fields, self._body))
        if self._parser.trailing_data[0]:
            self._upstream.violations.append(f"bytes after a request: {self._parser.trailing_data[0]!r}")
        self.transport.write(self._upstream.response)
        if self._upstream.closes:
            self.transport.close()
        # For the parser, the request has been handled.
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)


def read_responses(received: bytes, methods: Sequence[bytes]) -> tuple[list[int], bool]:
    """Return the final statuses that a client received, and whether the last response was complete."""
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
            status = read_response(parser)
        except h11.RemoteProtocolError as error:
            # The only allowed fault: a response that is truncated where the upstream's was.
            if not TRUNCATED.search(str(error)):
                raise
            return statuses, False
        statuses.append(status)
        received = parser.trailing_data[0]
    assert received == b""
    return statuses, True


def read_response(parser: h11.Connection) -> int:
    status = 0
    while True:
        event = parser.next_event()
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.EndOfMessage):
            return status
        else:
            assert isinstance(event, h11.InformationalResponse | h11.Data), event
