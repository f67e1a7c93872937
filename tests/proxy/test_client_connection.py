"""Client connections: keep-alive, pipelining, timeouts, and errors that affect no other connection."""

import asyncio
from collections.abc import Awaitable

import pytest

from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Response, Routed
from proxy.transport.server_state import Timeouts
from tests.proxy.harness import Harness
from tests.proxy.raw_sockets import RawConnection, without_dates

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
BLOB = b"x" * 1_000_000


def get(path: bytes) -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\nHost: h\r\n\r\n"


def post(length: int, *fields: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n" % length + b"".join(fields) + b"\r\n"


def test_a_connection_serves_one_request_after_the_other_on_one_upstream_connection(harness: Harness) -> None:
    client = harness.connect()
    client.send(get(b"/1"))
    upstream = harness.upstream.accept()
    for path in (b"/1", b"/2", b"/3"):
        assert upstream.receive_head().startswith(b"GET " + path + b" ")
        upstream.send(OK)
        assert client.receive_to(b"hi") == OK
        client.send(get(b"/%d" % (int(path[1:]) + 1)))
    assert harness.upstream.is_untouched()


def test_a_head_may_arrive_byte_by_byte(harness: Harness) -> None:
    client = harness.connect()
    client.send_in_pieces(GET)
    assert harness.upstream.accept().receive_head().startswith(b"GET / HTTP/1.1\r\nHost: h\r\n")


def test_pipelined_requests_are_forwarded_one_after_the_other(harness: Harness) -> None:
    client = harness.connect()
    client.send(get(b"/1") + get(b"/2") + post(3) + b"abc" + get(b"/4"))
    upstream = harness.upstream.accept()
    responses = b""
    for beginning in (b"GET /1 ", b"GET /2 ", b"POST / ", b"GET /4 "):
        assert upstream.receive_head().startswith(beginning)
        if beginning == b"POST / ":
            assert upstream.receive_exactly(3) == b"abc"
        assert not upstream.has_input()
        upstream.send(OK)
        responses += client.receive_to(b"hi")
    assert responses == OK * 4


def test_thousands_of_pipelined_requests_do_not_exhaust_the_stack(harness: Harness) -> None:
    harness.router.decide = lambda head: Response(200, body=head.target)
    client = harness.connect()
    client.send(b"".join(get(b"/%05d" % number) for number in range(5000)) + get(b"/last"))
    received = client.receive_to(b"/last")
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 5001
    assert harness.server.counters.errors == 0


def test_a_response_of_the_router_is_complete_and_the_connection_stays_open(harness: Harness) -> None:
    harness.router.decide = lambda _head: Response(401, (("X-Why", "login"),), b"no")
    client = harness.connect()
    for _ in range(2):
        client.send(GET)
        assert without_dates(client.receive_to(b"\r\n\r\nno")) == (
            b"HTTP/1.1 401 Unauthorized\r\nX-Why: login\r\nContent-Length: 2\r\n\r\nno"
        )


def test_a_response_of_the_router_to_head_has_no_body(harness: Harness) -> None:
    harness.router.decide = lambda _head: Response(200, body=b"body")
    client = harness.connect()
    client.send(b"HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    response = without_dates(client.receive_rest())
    assert response == b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"


def test_the_body_of_a_request_that_the_router_answers_is_skipped(harness: Harness) -> None:
    harness.router.decide = lambda head: Response(200, body=head.target)
    client = harness.connect()
    client.send(post(len(GET)) + GET + get(b"/next"))
    assert client.receive_to(b"/next").count(b"HTTP/1.1 200 OK") == 2
    assert [head.target for head in harness.router.heads] == [b"/", b"/next"]


def test_a_router_may_be_asynchronous(harness: Harness) -> None:
    asked = asyncio.Event()
    decided: asyncio.Future[Routed] = harness.call(lambda: asyncio.get_running_loop().create_future())

    def decide(head: RequestHead) -> Awaitable[Routed]:
        asked.set()
        return decided

    harness.router.decide = decide
    client = harness.connect()
    client.send(post(5) + b"hello")
    harness.run(asked.wait())
    harness.call(lambda: decided.set_result(harness.router.forward))
    upstream = harness.upstream.accept()
    upstream.receive_head()
    assert upstream.receive_exactly(5) == b"hello"
    upstream.send(OK)
    assert client.receive_to(b"hi") == OK


def test_a_router_that_raises_ends_only_that_connection(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(head: RequestHead) -> Routed:
        raise LookupError("deliberate")

    async def fail_later(head: RequestHead) -> Routed:
        raise LookupError("deliberate")

    for decide in (fail, fail_later):
        harness.router.decide = decide
        client = harness.connect()
        client.send(GET)
        assert client.receive_rest().startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert harness.server.counters.errors == 2
    harness.router.decide = None
    assert harness.exchange(GET, OK)[1] == OK


def test_a_client_that_leaves_cancels_its_routing(harness: Harness) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def think(head: RequestHead) -> Routed:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError("nothing sets it")

    harness.router.decide = think
    client = harness.connect()
    client.send(GET)
    harness.run(started.wait())
    client.reset()
    harness.run(cancelled.wait())


def test_a_client_that_leaves_ends_its_upstream_connection(harness: Harness) -> None:
    client = harness.connect()
    client.send(GET)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    client.reset()
    assert upstream.is_ended()


def test_a_client_that_closes_its_half_still_gets_its_response(harness: Harness) -> None:
    client = harness.connect()
    client.send(post(5) + b"hello")
    client.half_close()
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.receive_exactly(5)
    upstream.send(OK)
    assert client.receive_rest() == OK


@pytest.mark.parametrize("before", [True, False])
def test_an_event_stream_ends_with_its_listener(harness: Harness, before: bool) -> None:
    client = harness.connect()
    client.send(GET)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    if before:
        client.half_close()
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
    if not before:
        client.receive_to(b"data: 1\n\n")
        client.half_close()
    assert upstream.is_ended()


def test_held_requests_are_served_after_the_client_closes_its_half(harness: Harness) -> None:
    client = harness.connect()
    client.send(GET * 3)
    client.half_close()
    upstream = harness.upstream.accept()
    for _ in range(3):
        upstream.receive_head()
        upstream.send(OK)
    assert client.receive_rest() == OK * 3


def test_a_client_that_closes_its_half_within_a_body_gets_an_error(harness: Harness) -> None:
    client = harness.connect()
    client.send(post(10) + b"hello")
    upstream = harness.upstream.accept()
    upstream.receive_head()
    client.half_close()
    assert client.receive_rest().startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert upstream.receive_until_lost() == b"hello"


@pytest.mark.parametrize("beginning", [b"", b"GET / HT"])
def test_a_client_that_closes_its_half_before_a_request_is_closed(harness: Harness, beginning: bytes) -> None:
    client = harness.connect()
    client.send(beginning)
    client.half_close()
    assert client.receive_rest() == b""


def test_continue_is_forwarded_before_the_body(harness: Harness) -> None:
    client = harness.connect()
    client.send(post(5, b"Expect: 100-continue\r\n"))
    upstream = harness.upstream.accept()
    assert b"Expect: 100-continue\r\n" in upstream.receive_head()
    upstream.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert client.receive_head() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"hello")
    assert upstream.receive_exactly(5) == b"hello"
    upstream.send(OK)
    assert client.receive_to(b"hi") == OK


def test_a_final_response_instead_of_continue_ends_the_connection(harness: Harness) -> None:
    client = harness.connect()
    client.send(post(5, b"Expect: 100-continue\r\n"))
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(b"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n")
    assert client.receive_rest() == b"HTTP/1.1 417 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    assert upstream.is_ended()


def send_all_then_read(client: RawConnection, request: bytes) -> bytes:
    """Send the whole body before reading, like many simple clients."""
    client.send(request)
    return client.receive_rest()


def test_an_early_response_reaches_a_client_that_still_sends_its_body(harness: Harness) -> None:
    harness.router.decide = lambda _head: Response(413, body=b"too large")
    response = send_all_then_read(harness.connect(), post(20 * len(BLOB)) + BLOB * 20)
    assert (
        without_dates(response)
        == b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large"
    )


def test_an_early_response_of_the_upstream_reaches_a_client_that_still_sends_its_body(
    harness: Harness,
) -> None:
    client = harness.connect()
    client.send(post(20 * len(BLOB)))
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(b"HTTP/1.1 413 Large\r\nContent-Length: 2\r\n\r\nno")
    response = send_all_then_read(client, BLOB * 20)
    assert response == b"HTTP/1.1 413 Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"


def test_a_refusal_reaches_a_client_that_still_sends(harness: Harness) -> None:
    response = send_all_then_read(harness.connect(), b"GET / HTTP/9.9\r\n\r\n" + BLOB * 20)
    assert response.startswith(b"HTTP/1.1 505 HTTP Version Not Supported\r\n")


def test_a_response_may_start_before_the_body_ends(harness: Harness) -> None:
    client = harness.connect()
    client.send(post(10) + b"hello")
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.receive_exactly(5)
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
    assert client.receive_to(b"first").endswith(b"Connection: close\r\n\r\nfirst")
    client.send(b"world")
    assert upstream.receive_exactly(5) == b"world"
    upstream.send(b"after")
    assert client.receive_rest() == b"after"


QUICK = 0.2


def test_a_head_that_arrives_too_slowly_is_refused(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(head=QUICK))
    client = idle_harness.connect()
    client.send(b"GET / HTTP/1.1\r\nHo")
    assert client.receive_rest().startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_slow_bytes_do_not_extend_the_deadline_of_a_head(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(head=QUICK))
    client = idle_harness.connect()
    client.send(b"GET / HTTP/1.1\r\n")
    while not client.has_input(within=QUICK / 5):
        client.send(b"A")
    assert client.receive_until_lost().startswith(b"HTTP/1.1 408 Request Timeout\r\n")


@pytest.mark.parametrize("requests", [0, 1])
def test_an_idle_connection_is_closed(idle_harness: Harness, requests: int) -> None:
    idle_harness.start(timeouts=Timeouts(head=QUICK, idle=QUICK))
    idle_harness.router.decide = lambda _head: Response(204)
    client = idle_harness.connect()
    client.send(GET * requests)
    assert without_dates(client.receive_until_lost()) == b"HTTP/1.1 204 No Content\r\n\r\n" * requests


def test_a_missing_body_times_out(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(body=QUICK))
    client = idle_harness.connect()
    client.send(post(10) + b"hello")
    upstream = idle_harness.upstream.accept()
    upstream.receive_head()
    assert client.receive_rest().startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert upstream.receive_until_lost() == b"hello"


def test_a_missing_response_times_out(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(response=QUICK))
    client = idle_harness.connect()
    client.send(GET)
    upstream = idle_harness.upstream.accept()
    upstream.receive_head()
    assert client.receive_rest().startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
    assert upstream.is_ended()
    assert idle_harness.server.counters.upstream_failures == {"answer timeout": 1}


def test_a_response_that_stops_times_out_without_a_second_status_line(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(stream=QUICK))
    client = idle_harness.connect()
    client.send(GET)
    upstream = idle_harness.upstream.accept()
    upstream.receive_head()
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
    received = client.receive_until_lost()
    assert received == b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"


def send_for_ever(client: RawConnection) -> None:
    while True:
        client.send(b"more")


def test_a_client_that_lingers_too_long_is_disconnected(idle_harness: Harness) -> None:
    idle_harness.start(timeouts=Timeouts(linger=QUICK))
    client = idle_harness.connect()
    client.send(b"nonsense\r\n\r\n")
    assert client.receive_rest().startswith(b"HTTP/1.1 400 Bad Request\r\n")
    with pytest.raises(ConnectionError):
        send_for_ever(client)
