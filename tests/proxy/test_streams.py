"""Answers of our own that come piece by piece: framed, slowed down, and always closed."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable

import pytest

from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response, Routed, Stream
from proxy.transport.server_state import Limits, Timeouts
from tests.proxy.harness import Harness
from tests.proxy.raw_sockets import Wire, undated

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
QUICK = 0.2
BLOCK = b"x" * 65536


class Pieces:
    """A generator that yields what the test says, and tells whether it was closed."""

    def __init__(self, *first: bytes, then: Exception | None = None, endless: bool = False) -> None:
        self._first = first
        self._then = then
        self._endless = endless
        self.yielded = 0
        self.closed = False

    async def generate(self) -> AsyncGenerator[bytes, None]:
        try:
            for piece in self._first:
                yield piece
                self.yielded += 1
            if self._then is not None:
                raise self._then
            if self._endless:
                await asyncio.Event().wait()
        finally:
            # Closing may take a while: nothing must interrupt it.
            await asyncio.sleep(0.01)
            self.closed = True

    def route(self, credential: str | None = None, user: str | None = None) -> Stream:
        headers = (("Content-Type", "text/event-stream"),)
        return Stream(200, headers, self.generate(), credential, user)


def begin(harness: Harness, pieces: Pieces, request: bytes = GET, credential: str | None = None) -> Wire:
    harness.router.decide = lambda _head: pieces.route(credential)
    client = harness.connect()
    client.send(request)
    return client


def begun(harness: Harness, pieces: Pieces) -> AsyncGenerator[bytes, None]:
    """A generator that has something to close."""
    generator = pieces.generate()
    harness.run(anext(generator))
    return generator


def wait_until_closed(harness: Harness, pieces: Pieces) -> None:
    harness.wait_until(lambda: pieces.closed, "the generator is closed")
    harness.wait_until(lambda: harness.server.counters.open_streams == 0, "the stream is no longer counted")


def test_pieces_are_chunks_and_the_connection_stays(harness: Harness) -> None:
    pieces = Pieces(b"one", b"", b"two")
    client = begin(harness, pieces)
    assert undated(client.receive_to(b"0\r\n\r\n")) == CHUNKED + b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    wait_until_closed(harness, pieces)
    harness.router.decide = lambda _head: Response(204)
    client.send(GET)
    assert client.receive_head().startswith(b"HTTP/1.1 204 ")


def test_a_piece_is_sent_at_once(harness: Harness) -> None:
    client = begin(harness, Pieces(b"one", endless=True))
    assert undated(client.receive_to(b"one\r\n")) == CHUNKED + b"3\r\none\r\n"
    assert harness.server.counters.open_streams == 1


def test_requests_that_wait_behind_a_stream_are_served_after_it(harness: Harness) -> None:
    routes: list[Routed] = [Response(204), Pieces(b"one").route()]
    harness.router.decide = lambda _head: routes.pop()
    client = harness.connect()
    client.send(GET + GET)
    assert client.receive_to(b"0\r\n\r\n")
    assert client.receive_head().startswith(b"HTTP/1.1 204 ")


def test_pieces_for_http_1_0_end_with_the_connection(harness: Harness) -> None:
    client = begin(harness, Pieces(b"one", b"two"), b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    assert undated(client.receive_rest()) == head + b"onetwo"


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_head_gets_the_head_only(harness: Harness, version: bytes) -> None:
    pieces = Pieces(b"one", b"two")
    generator = begun(harness, pieces)
    harness.router.decide = lambda _head: Stream(200, (), generator)
    client = harness.connect()
    client.send(b"HEAD / HTTP/" + version + b"\r\nHost: h\r\n\r\n")
    client.half_close()
    assert client.receive_rest().partition(b"\r\n\r\n")[2] == b""
    wait_until_closed(harness, pieces)


@pytest.mark.parametrize("leave", [Wire.close, Wire.reset, Wire.half_close])
@pytest.mark.parametrize(
    "request_bytes", [GET, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"]
)
def test_a_client_that_goes_away_closes_the_generator(
    harness: Harness, request_bytes: bytes, leave: Callable[[Wire], None]
) -> None:
    pieces = Pieces(b"one", endless=True)
    client = begin(harness, pieces, request_bytes)
    client.receive_to(b"one\r\n")
    leave(client)
    wait_until_closed(harness, pieces)
    assert harness.server.open_connections == 0
    assert harness.server.counters.errors == 0


def test_a_client_that_does_not_read_stops_the_generator_until_it_goes_away(harness: Harness) -> None:
    pieces = Pieces(*[BLOCK] * 1000)
    client = begin(harness, pieces)
    client.receive_head()
    client.receive_exactly(len(BLOCK))
    before = -1
    while before != pieces.yielded:
        before = pieces.yielded
        harness.run(asyncio.sleep(QUICK))
    assert 0 < pieces.yielded < 1000
    client.reset()
    wait_until_closed(harness, pieces)


def test_a_slow_client_gets_every_piece(harness: Harness) -> None:
    client = begin(harness, Pieces(*[BLOCK] * 200))
    client.receive_head()
    for _ in range(200):
        assert client.receive_exactly(len(BLOCK) + 9) == b"10000\r\n" + BLOCK + b"\r\n"
    assert client.receive_exactly(5) == b"0\r\n\r\n"


def test_a_revoked_credential_ends_the_stream(harness: Harness) -> None:
    pieces = Pieces(b"one", endless=True)
    client = begin(harness, pieces, credential="one")
    client.receive_to(b"one\r\n")
    assert harness.call(lambda: harness.server.credentials) == {"one"}
    assert harness.call(lambda: harness.server.end_credential("one")) == 1
    assert client.is_ended()
    wait_until_closed(harness, pieces)


def test_draining_ends_streams_at_once_and_waits_until_they_are_closed(harness: Harness) -> None:
    pieces = Pieces(b"one", endless=True)
    client = begin(harness, pieces)
    client.receive_to(b"one\r\n")
    harness.drain(deadline=10)
    assert pieces.closed
    # Nobody may take it for complete.
    assert client.receive_rest() == b""


def test_a_stream_that_begins_while_we_leave_ends_at_once(harness: Harness) -> None:
    asked = asyncio.Event()
    decided: asyncio.Future[Routed] = harness.call(lambda: asyncio.get_running_loop().create_future())

    async def decide() -> Routed:
        asked.set()
        return await decided

    harness.router.decide = lambda _head: decide()
    client = harness.connect()
    client.send(GET)
    harness.run(asked.wait())
    draining = threading.Thread(target=harness.drain, args=(10,))
    draining.start()
    harness.wait_until(lambda: harness.server.draining, "the proxy drains")
    pieces = Pieces(b"one", b"two", endless=True)
    generator = begun(harness, pieces)
    harness.call(lambda: decided.set_result(Stream(200, (), generator)))
    draining.join()
    assert not client.receive_rest().endswith(b"0\r\n\r\n")
    assert pieces.closed


def test_a_generator_that_raises_costs_only_its_connection(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    pieces = Pieces(b"one", then=LookupError("deliberate"))
    client = begin(harness, pieces)
    assert not client.receive_until_lost().endswith(b"0\r\n\r\n")
    wait_until_closed(harness, pieces)
    assert harness.server.counters.errors == 1
    assert "a stream failed" in caplog.text


def test_a_generator_that_is_silent_for_too_long_is_ended(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(response=QUICK))
    pieces = Pieces(b"one", endless=True)
    client = begin(idle_harness, pieces)
    assert client.receive_until_lost().endswith(b"3\r\none\r\n")
    wait_until_closed(idle_harness, pieces)
    assert idle_harness.server.counters.refusals == {"stream timeout": 1}


def test_a_stream_lasts_as_long_as_pieces_come(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(response=5 * QUICK))
    end = asyncio.Event()

    async def tick() -> AsyncGenerator[bytes, None]:
        while not end.is_set():
            yield b"tick"
            await asyncio.sleep(QUICK / 2)

    idle_harness.router.decide = lambda _head: Stream(200, (), tick())
    client = idle_harness.connect()
    client.send(GET)
    for _ in range(30):
        client.receive_to(b"tick\r\n")
    idle_harness.call(end.set)
    assert client.receive_to(b"0\r\n\r\n")


def test_a_stream_for_a_user_with_too_many_connections_is_refused_and_closed(idle_harness: Harness) -> None:
    idle_harness.start(Limits(connections_per_user=1))
    first, second = Pieces(b"one", endless=True), Pieces(b"two")
    idle_harness.router.decide = lambda _head: first.route(user="ada")
    client = idle_harness.connect()
    client.send(GET)
    client.receive_to(b"one\r\n")
    generator = begun(idle_harness, second)
    idle_harness.router.decide = lambda _head: Stream(200, (), generator, user="ada")
    other = idle_harness.connect()
    other.send(GET)
    assert other.receive_to(b"connections\n").startswith(b"HTTP/1.1 429 ")
    idle_harness.wait_until(lambda: second.closed, "the refused generator is closed")


def test_a_body_that_comes_with_a_request_for_a_stream_is_skipped(harness: Harness) -> None:
    def decide(head: RequestHead) -> Routed:
        return Pieces(b"one").route() if head.method == b"POST" else Response(200, body=head.target)

    harness.router.decide = decide
    client = harness.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 27\r\n\r\n" + GET)
    client.send(b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
    client.receive_to(b"0\r\n\r\n")
    assert client.receive_to(b"/next").startswith(b"HTTP/1.1 200 OK\r\n")
    assert [head.target for head in harness.router.heads] == [b"/", b"/next"]


def test_the_router_may_stream_when_the_upstream_is_gone(harness: Harness) -> None:
    harness.upstream.stop_listening()
    harness.router.decide_again = lambda _head: Pieces(b"one").route()
    client = harness.connect()
    client.send(GET)
    assert undated(client.receive_to(b"0\r\n\r\n")) == CHUNKED + b"3\r\none\r\n0\r\n\r\n"
