"""The response that a client receives, byte for byte."""

from typing import NamedTuple

import pytest

from tests.proxy.harness import Harness

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
HEAD = b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"
OLD = b"GET / HTTP/1.0\r\n\r\n"


class Case(NamedTuple):
    """A response of an upstream, which then closes, and the response that the client gets."""

    name: str
    request: bytes
    response: bytes
    passed: bytes


CASES = (
    Case(
        "a length",
        GET,
        b"HTTP/1.1 200 OK\r\nX: 1\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nX: 1\r\nContent-Length: 2\r\n\r\nhi",
    ),
    Case(
        "chunks",
        GET,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    ),
    Case(
        "trailers stay behind",
        GET,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0;a=b\r\nSet-Cookie: x=y\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    ),
    Case(
        "until the connection ends",
        GET,
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello",
    ),
    Case(
        "an upstream of HTTP/1.0",
        GET,
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello",
    ),
    Case(
        "chunks for HTTP/1.0",
        OLD,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nhi\r\n3\r\n th\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nhi th",
    ),
    Case(
        "HTTP/1.0 that wants to stay",
        b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi",
    ),
    Case(
        "a client that wants to leave",
        b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
    ),
    Case(
        "HEAD",
        HEAD,
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    ),
    Case(
        "HEAD of chunks",
        HEAD,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    Case(
        "204",
        GET,
        b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ),
    Case(
        "304",
        GET,
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: x\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 9\r\n\r\n",
    ),
    Case(
        "no reason",
        GET,
        b"HTTP/1.1 299\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n",
    ),
    Case(
        "hop-by-hop",
        GET,
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive, x-hop, content-length\r\nKeep-Alive: timeout=5\r\n"
        b"X-Hop: 1\r\n"
        b"Proxy-Authenticate: x\r\nTrailer: y\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ),
    Case(
        "policy for the whole origin",
        GET,
        b"HTTP/1.1 200 OK\r\nService-Worker-Allowed: /\r\nAccess-Control-Allow-Origin: *\r\n"
        b"access-control-allow-credentials: true\r\nClear-Site-Data: *\r\nAlt-Svc: x\r\n"
        b"Strict-Transport-Security: x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ),
    Case(
        "cookies that could pose as the session",
        GET,
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: codehub_session=evil; Path=/\r\n"
        b"set-cookie:  codehub_session =evil\r\nSet-Cookie: =codehub_session=evil\r\n"
        b"Set-Cookie: b=codehub_session\r\n"
        b"Content-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=codehub_session\r\n"
        b"Content-Length: 0\r\n\r\n",
    ),
    Case(
        "interim responses",
        GET,
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\nConnection: close\r\n\r\n"
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ),
    Case(
        "interim responses for HTTP/1.0",
        OLD,
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ),
)

MALFORMED = {
    "not HTTP": b"hello\r\n\r\n",
    "HTTP/2": b"HTTP/2 200 OK\r\n\r\n",
    "line feeds": b"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 0\r\n\r\n",
    "folded": b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "space before colon": b"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
    "NUL": b"HTTP/1.1 200 OK\r\nA: \x00\r\nContent-Length: 0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "a list of lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 0, 0\r\n\r\n",
    "a signed length": b"HTTP/1.1 200 OK\r\nContent-Length: +0\r\n\r\n",
    "two framings": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "gzip, chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": b"HTTP/1.1 200 OK\r\n" + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an unrequested upgrade": b"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000,
    "interim responses without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 40,
    "closed at once": b"",
    "closed in the head": b"HTTP/1.1 200 OK\r\nConte",
}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_response_is_forwarded_as_expected(harness: Harness, case: Case) -> None:
    assert harness.exchange(case.request, case.response)[1] == case.passed
    assert harness.server.counters.errors == 0


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_response_may_arrive_byte_by_byte(harness: Harness, case: Case) -> None:
    client = harness.connect()
    client.send(case.request)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send_in_pieces(case.response)
    upstream.close()
    client.half_close()
    assert client.receive_rest() == case.passed


@pytest.mark.parametrize("response", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_response_is_a_bad_gateway(harness: Harness, response: bytes) -> None:
    _, response = harness.exchange(GET, response)
    final = response[response.index(b"HTTP/1.1 5") :]
    assert final.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert b"Connection: close\r\n" in final
    assert harness.server.counters.upstream_failures.total() == 1
    assert harness.server.counters.errors == 0


TRUNCATED = {
    "in a length": (b"Content-Length: 10", b"hello"),
    "between chunks": (b"Transfer-Encoding: chunked", b"5\r\nhello\r\n"),
    "by a chunk that is no chunk": (b"Transfer-Encoding: chunked", b"5\r\nhelloXX0\r\n\r\n"),
}


@pytest.mark.parametrize(("field", "body"), TRUNCATED.values(), ids=TRUNCATED)
def test_a_truncated_response_ends_the_connection_without_a_second_status_line(
    harness: Harness, field: bytes, body: bytes
) -> None:
    client = harness.connect()
    client.send(GET)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(b"HTTP/1.1 200 OK\r\n" + field + b"\r\n\r\n")
    assert client.receive_head().startswith(b"HTTP/1.1 200 OK\r\n")
    upstream.send(body)
    upstream.close()
    assert b"HTTP" not in client.receive_until_lost()


def test_bytes_after_a_response_are_dropped(harness: Harness) -> None:
    surplus = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"
    client = harness.connect()
    client.send(GET)
    first = harness.upstream.accept()
    first.receive_head()
    first.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi" + surplus)
    assert client.receive_to(b"hi") == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
    assert first.is_ended()
    client.send(GET)
    second = harness.upstream.accept()
    second.receive_head()
    second.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
    assert client.receive_to(b"yes") == b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"


def test_an_idle_upstream_that_sends_data_is_dropped(harness: Harness) -> None:
    client = harness.connect()
    client.send(GET)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    client.receive_to(b"hi")
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON")
    assert upstream.is_ended()
    assert harness.call(lambda: harness.server.idle_upstreams) == 0
    assert not client.has_input()


def test_a_trusted_upstream_may_send_all_fields_but_hop_by_hop_ones(harness: Harness) -> None:
    harness.router.change(trusted=True)
    fields = (
        b"Set-Cookie: codehub_session=new; Path=/\r\nset-cookie: =x\r\nAccess-Control-Allow-Origin: *\r\n"
        b"Strict-Transport-Security: x\r\nClear-Site-Data: *\r\nService-Worker-Allowed: /\r\nAlt-Svc: x\r\n"
    )
    hops = b"Connection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
    response = b"HTTP/1.1 200 OK\r\n" + hops + fields + b"Content-Length: 0\r\n\r\n"
    assert harness.exchange(GET, response)[1] == (
        b"HTTP/1.1 200 OK\r\n" + fields + b"Content-Length: 0\r\n\r\n"
    )
