"""Small bodies that a router reads before it decides."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Collect, Response, Routed
from proxy.transport.server_state import Timeouts
from tests.proxy.harness import Harness
from tests.proxy.raw_sockets import without_dates
from tests.proxy.test_streams import Chunks

LIMIT = 16
QUICK = 0.2
CHUNKED = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"


def post(length: int, *fields: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n" % length + b"".join(fields) + b"\r\n"


def echoed(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def echo(body: bytes) -> Routed:
    return Response(200, body=body)


def collect(_head: RequestHead) -> Routed:
    return Collect(LIMIT, echo)


async def collect_later(_head: RequestHead) -> Routed:
    return Collect(LIMIT, echo)


@pytest.mark.parametrize("decide", [collect, collect_later])
@pytest.mark.parametrize(
    ("request_bytes", "body"),
    [
        (post(5) + b"hello", b"hello"),
        (post(LIMIT) + b"x" * LIMIT, b"x" * LIMIT),
        (post(0), b""),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b""),
        (CHUNKED + b"3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: x\r\n\r\n", b"hello"),
        (CHUNKED + b"0\r\n\r\n", b""),
    ],
)
def test_a_body_is_read_completely_and_the_connection_stays_open(
    harness: Harness, decide: Callable[[RequestHead], Routed], request_bytes: bytes, body: bytes
) -> None:
    harness.router.decide = decide
    client = harness.connect()
    for size in (len(request_bytes), 1):
        client.send_in_pieces(request_bytes, size)
        assert without_dates(client.receive_exactly(len(echoed(body)) + 37)) == echoed(body)
    assert harness.upstream.is_untouched()


def test_data_after_a_body_is_the_next_request(harness: Harness) -> None:
    harness.router.decide = collect
    client = harness.connect()
    client.send((post(5) + b"hello") * 3)
    client.half_close()
    assert without_dates(client.receive_rest()) == echoed(b"hello") * 3


@pytest.mark.parametrize(
    "request_bytes",
    [
        post(LIMIT + 1),
        post(LIMIT + 1) + b"x" * (LIMIT + 1),
        post(10_000_000) + b"x" * 10_000_000,
        post(LIMIT + 1, b"Expect: 100-continue\r\n"),
        CHUNKED + b"11\r\n" + b"x" * (LIMIT + 1),
        CHUNKED + b"1\r\nx\r\n" * (LIMIT + 1),
        CHUNKED + b"fffffffffffffff\r\n" + b"x" * 10_000_000,
    ],
)
def test_a_body_that_is_too_large_is_refused(harness: Harness, request_bytes: bytes) -> None:
    harness.router.decide = collect
    client = harness.connect()
    client.send(request_bytes)
    response = client.receive_rest()
    assert response.startswith(b"HTTP/1.1 413 Request Entity Too Large\r\n")
    assert b"\r\nConnection: close\r\n" in response
    assert harness.server.counters.refusals == {"body too large": 1}


def test_a_client_that_waits_for_continue_gets_it(harness: Harness) -> None:
    harness.router.decide = collect
    client = harness.connect()
    client.send(post(5, b"Expect: 100-continue\r\n"))
    assert client.receive_head() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"hello")
    assert without_dates(client.receive_to(b"hello")) == echoed(b"hello")


def test_a_client_that_did_not_wait_for_continue_does_not_get_it(harness: Harness) -> None:
    harness.router.decide = collect
    client = harness.connect()
    client.send(post(5, b"Expect: 100-continue\r\n") + b"hello")
    assert without_dates(client.receive_to(b"hello")) == echoed(b"hello")


def test_a_malformed_body_is_refused(harness: Harness) -> None:
    harness.router.decide = collect
    client = harness.connect()
    client.send(CHUNKED + b"nonsense\r\n")
    assert client.receive_rest().startswith(b"HTTP/1.1 400 Bad Request\r\n")


@pytest.mark.parametrize("decide", [collect, collect_later])
def test_a_client_that_closes_its_half_within_the_body_gets_an_error(
    harness: Harness, decide: Callable[[RequestHead], Routed]
) -> None:
    harness.router.decide = decide
    client = harness.connect()
    client.send(post(5) + b"hel")
    client.half_close()
    assert client.receive_rest().startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_client_that_closed_its_half_before_the_body_was_read_gets_an_error(harness: Harness) -> None:
    asked, wanted = asyncio.Event(), asyncio.Event()

    async def decide(head: RequestHead) -> Routed:
        asked.set()
        await wanted.wait()
        return collect(head)

    harness.router.decide = decide
    client = harness.connect()
    client.send(post(5))
    harness.run(asked.wait())
    client.half_close()
    for _ in range(3):
        # Each one takes a turn of the loop, in which the proxy sees the end.
        harness.call(lambda: None)
    harness.call(wanted.set)
    assert client.receive_rest().startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_body_that_arrives_too_slowly_times_out(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(body=QUICK))
    idle_harness.router.decide = lambda _head: Collect(1_000_000, echo)
    client = idle_harness.connect()
    client.send(post(1_000_000))
    while not client.has_input(within=QUICK / 5):
        client.send(b"x")
    assert client.receive_until_lost().startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert idle_harness.server.counters.refusals == {"body timeout": 1}


def test_a_decision_may_take_longer_than_a_body(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(body=QUICK, idle=QUICK))
    later = asyncio.Event()

    async def think(body: bytes) -> Routed:
        await later.wait()
        return Response(200, body=body)

    idle_harness.router.decide = lambda _head: Collect(LIMIT, think)
    client = idle_harness.connect()
    client.send(post(5) + b"hello")
    assert not client.has_input(within=2 * QUICK)
    idle_harness.call(later.set)
    assert without_dates(client.receive_to(b"hello")) == echoed(b"hello")


def test_a_client_that_leaves_while_the_decision_is_made_cancels_it(harness: Harness) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def think(_body: bytes) -> Routed:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError("nothing sets it")

    harness.router.decide = lambda _head: Collect(LIMIT, think)
    client = harness.connect()
    client.send(post(5) + b"hello")
    harness.run(started.wait())
    client.reset()
    harness.run(cancelled.wait())


def test_a_stream_may_follow_a_body(harness: Harness) -> None:
    async def stream(body: bytes) -> Routed:
        return Chunks(body).route()

    harness.router.decide = lambda _head: Collect(LIMIT, stream)
    client = harness.connect()
    client.send(post(5) + b"hello")
    assert client.receive_to(b"0\r\n\r\n").endswith(b"5\r\nhello\r\n0\r\n\r\n")


async def fail(_body: bytes) -> Routed:
    raise LookupError("deliberate")


async def collect_again(_body: bytes) -> Routed:
    return Collect(LIMIT, echo)


async def cancel(_body: bytes) -> Routed:
    raise asyncio.CancelledError


@pytest.mark.parametrize("then", [fail, collect_again, cancel])
def test_an_invalid_decision_ends_only_its_connection(
    harness: Harness, caplog: pytest.LogCaptureFixture, then: Callable[[bytes], Awaitable[Routed]]
) -> None:
    harness.router.decide = lambda _head: Collect(LIMIT, then)
    client = harness.connect()
    client.send(post(5) + b"hello")
    assert client.receive_rest().startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert harness.server.counters.errors == 1


def test_a_collected_body_cannot_be_forwarded(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    async def forward(_body: bytes) -> Routed:
        return harness.router.forward

    harness.router.decide = lambda _head: Collect(LIMIT, forward)
    client = harness.connect()
    client.send(post(5) + b"hello")
    assert client.receive_rest().startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert harness.upstream.is_untouched()
