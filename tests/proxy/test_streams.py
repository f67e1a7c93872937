"""Streams of chunks: framed, slowed down to the client, and always closed."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable

import pytest

from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response, Routed, Stream
from proxy.transport.server_state import Limits, Timeouts
from tests.proxy.harness import Harness
from tests.proxy.raw_sockets import RawConnection, without_dates

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
QUICK = 0.2
BLOCK = b"x" * 65536


class Chunks:
    """A generator of given chunks that records whether it was closed."""

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
            # Closing may take a while, and nothing must interrupt it.
            await asyncio.sleep(0.01)
            self.closed = True

    def route(self, credential: str | None = None, user: str | None = None) -> Stream:
        headers = (("Content-Type", "text/event-stream"),)
        return Stream(200, headers, self.generate(), credential, user)


def start_stream(
    harness: Harness, chunks: Chunks, request: bytes = GET, credential: str | None = None
) -> RawConnection:
    harness.router.decide = lambda _head: chunks.route(credential)
    client = harness.connect()
    client.send(request)
    return client


def started(harness: Harness, chunks: Chunks) -> AsyncGenerator[bytes, None]:
    """Return a generator that has started, so that it must be closed."""
    generator = chunks.generate()
    harness.run(anext(generator))
    return generator


def wait_until_closed(harness: Harness, chunks: Chunks) -> None:
    harness.wait_until(lambda: chunks.closed, "the generator is closed")
    harness.wait_until(lambda: harness.server.counters.open_streams == 0, "the stream is no longer counted")


def test_a_stream_is_chunked_and_the_connection_stays_open(harness: Harness) -> None:
    chunks = Chunks(b"one", b"", b"two")
    client = start_stream(harness, chunks)
    assert without_dates(client.receive_to(b"0\r\n\r\n")) == CHUNKED + b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    wait_until_closed(harness, chunks)
    harness.router.decide = lambda _head: Response(204)
    client.send(GET)
    assert client.receive_head().startswith(b"HTTP/1.1 204 ")


def test_a_chunk_is_sent_at_once(harness: Harness) -> None:
    client = start_stream(harness, Chunks(b"one", endless=True))
    assert without_dates(client.receive_to(b"one\r\n")) == CHUNKED + b"3\r\none\r\n"
    assert harness.server.counters.open_streams == 1


def test_requests_behind_a_stream_are_served_after_it(harness: Harness) -> None:
    routes: list[Routed] = [Response(204), Chunks(b"one").route()]
    harness.router.decide = lambda _head: routes.pop()
    client = harness.connect()
    client.send(GET + GET)
    assert client.receive_to(b"0\r\n\r\n")
    assert client.receive_head().startswith(b"HTTP/1.1 204 ")


def test_a_stream_for_http_1_0_ends_with_the_connection(harness: Harness) -> None:
    client = start_stream(
        harness, Chunks(b"one", b"two"), b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    assert without_dates(client.receive_rest()) == head + b"onetwo"


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_head_request_gets_only_the_head(harness: Harness, version: bytes) -> None:
    chunks = Chunks(b"one", b"two")
    generator = started(harness, chunks)
    harness.router.decide = lambda _head: Stream(200, (), generator)
    client = harness.connect()
    client.send(b"HEAD / HTTP/" + version + b"\r\nHost: h\r\n\r\n")
    client.half_close()
    assert client.receive_rest().partition(b"\r\n\r\n")[2] == b""
    wait_until_closed(harness, chunks)


@pytest.mark.parametrize("leave", [RawConnection.close, RawConnection.reset, RawConnection.half_close])
@pytest.mark.parametrize(
    "request_bytes", [GET, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"]
)
def test_a_client_that_leaves_closes_the_generator(
    harness: Harness, request_bytes: bytes, leave: Callable[[RawConnection], None]
) -> None:
    chunks = Chunks(b"one", endless=True)
    client = start_stream(harness, chunks, request_bytes)
    client.receive_to(b"one\r\n")
    leave(client)
    wait_until_closed(harness, chunks)
    assert harness.server.open_connections == 0
    assert harness.server.counters.errors == 0


def test_a_client_that_does_not_read_pauses_the_generator(harness: Harness) -> None:
    chunks = Chunks(*[BLOCK] * 1000)
    client = start_stream(harness, chunks)
    client.receive_head()
    client.receive_exactly(len(BLOCK))
    before = -1
    while before != chunks.yielded:
        before = chunks.yielded
        harness.run(asyncio.sleep(QUICK))
    assert 0 < chunks.yielded < 1000
    client.reset()
    wait_until_closed(harness, chunks)


def test_a_slow_client_gets_every_chunk(harness: Harness) -> None:
    client = start_stream(harness, Chunks(*[BLOCK] * 200))
    client.receive_head()
    for _ in range(200):
        assert client.receive_exactly(len(BLOCK) + 9) == b"10000\r\n" + BLOCK + b"\r\n"
    assert client.receive_exactly(5) == b"0\r\n\r\n"


def test_a_revoked_credential_ends_the_stream(harness: Harness) -> None:
    chunks = Chunks(b"one", endless=True)
    client = start_stream(harness, chunks, credential="one")
    client.receive_to(b"one\r\n")
    assert harness.call(lambda: harness.server.credentials) == {"one"}
    assert harness.call(lambda: harness.server.end_credential("one")) == 1
    assert client.is_ended()
    wait_until_closed(harness, chunks)


def test_draining_ends_streams_at_once_and_waits_until_they_are_closed(harness: Harness) -> None:
    chunks = Chunks(b"one", endless=True)
    client = start_stream(harness, chunks)
    client.receive_to(b"one\r\n")
    harness.drain(deadline=10)
    assert chunks.closed
    # The response must not look complete.
    assert client.receive_rest() == b""


def test_a_stream_that_starts_while_draining_ends_at_once(harness: Harness) -> None:
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
    chunks = Chunks(b"one", b"two", endless=True)
    generator = started(harness, chunks)
    harness.call(lambda: decided.set_result(Stream(200, (), generator)))
    draining.join()
    assert not client.receive_rest().endswith(b"0\r\n\r\n")
    assert chunks.closed


def test_a_generator_that_raises_ends_only_its_connection(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    chunks = Chunks(b"one", then=LookupError("deliberate"))
    client = start_stream(harness, chunks)
    assert not client.receive_until_lost().endswith(b"0\r\n\r\n")
    wait_until_closed(harness, chunks)
    assert harness.server.counters.errors == 1
    assert "a stream failed" in caplog.text


def test_a_generator_that_is_silent_for_too_long_is_ended(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(response=QUICK))
    chunks = Chunks(b"one", endless=True)
    client = start_stream(idle_harness, chunks)
    assert client.receive_until_lost().endswith(b"3\r\none\r\n")
    wait_until_closed(idle_harness, chunks)
    assert idle_harness.server.counters.refusals == {"stream timeout": 1}


def test_a_stream_lasts_as_long_as_chunks_come(idle_harness: Harness) -> None:
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
    first, second = Chunks(b"one", endless=True), Chunks(b"two")
    idle_harness.router.decide = lambda _head: first.route(user="ada")
    client = idle_harness.connect()
    client.send(GET)
    client.receive_to(b"one\r\n")
    generator = started(idle_harness, second)
    idle_harness.router.decide = lambda _head: Stream(200, (), generator, user="ada")
    other = idle_harness.connect()
    other.send(GET)
    assert other.receive_to(b"of this user\n").startswith(b"HTTP/1.1 429 ")
    idle_harness.wait_until(lambda: second.closed, "the refused generator is closed")


def test_the_body_of_a_request_for_a_stream_is_skipped(harness: Harness) -> None:
    def decide(head: RequestHead) -> Routed:
        return Chunks(b"one").route() if head.method == b"POST" else Response(200, body=head.target)

    harness.router.decide = decide
    client = harness.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 27\r\n\r\n" + GET)
    client.send(b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
    client.receive_to(b"0\r\n\r\n")
    assert client.receive_to(b"/next").startswith(b"HTTP/1.1 200 OK\r\n")
    assert [head.target for head in harness.router.heads] == [b"/", b"/next"]


def test_the_router_may_stream_when_the_upstream_is_gone(harness: Harness) -> None:
    harness.upstream.stop_listening()
    harness.router.decide_again = lambda _head: Chunks(b"one").route()
    client = harness.connect()
    client.send(GET)
    assert without_dates(client.receive_to(b"0\r\n\r\n")) == CHUNKED + b"3\r\none\r\n0\r\n\r\n"
