"""The head that an upstream receives, byte for byte."""

from typing import NamedTuple

import pytest

from codehub.ports import Upstream
from tests.proxy.harness import Harness

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
ADDED = (
    b"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: hub.example\r\n"
    b"Via: 1.1 codehub\r\n"
)


class Case(NamedTuple):
    """Fields of a request, and the fields that are forwarded."""

    name: str
    sent: bytes
    passed: bytes


CASES = (
    Case("nothing", b"", b""),
    Case("an unknown field keeps its case", b"X-cUstom:  a b \t\r\n", b"X-cUstom: a b\r\n"),
    Case("fields keep their order", b"B: 1\r\nA: 2\r\nB: 3\r\n", b"B: 1\r\nA: 2\r\nB: 3\r\n"),
    Case("an empty value stays", b"Accept:\r\n", b"Accept: \r\n"),
    Case("bytes beyond ASCII stay", b"X: caf\xe9\r\n", b"X: caf\xe9\r\n"),
    Case(
        "hop-by-hop",
        b"Keep-Alive: 5\r\nTE: trailers\r\nTrailer: X\r\n"
        b"Proxy-Connection: a\r\nProxy-Authorization: b\r\nProxy: c\r\n",
        b"",
    ),
    Case(
        "listed in Connection", b"Connection: close, X-Hop\r\nx-hop: 1\r\nX-Other: 2\r\n", b"X-Other: 2\r\n"
    ),
    Case(
        "protected although listed in Connection",
        b"Connection: host, cookie, content-length, origin\r\n"
        b"Cookie: a=1\r\nOrigin: https://x\r\nContent-Length: 0\r\n",
        b"Cookie: a=1\r\nOrigin: https://x\r\nContent-Length: 0\r\n",
    ),
    Case(
        "the client's word on where it came from",
        b"Forwarded: for=1\r\nX-Forwarded-For: 6.6.6.6\r\nx-forwarded-prefix: /x\r\n"
        b"X-Real-IP: 1\r\nVia: 1.0 me\r\n",
        b"",
    ),
    Case("disguised by an underscore", b"X_Forwarded_For: 6\r\nContent_Length: 9\r\nX_any: 1\r\n", b""),
    Case("session cookie", b"Cookie: a=1; codehub_session=secret; b=2\r\n", b"Cookie: a=1; b=2\r\n"),
    Case("session cookie alone", b"Cookie: codehub_session=secret\r\n", b""),
    Case("session cookie twice", b"Cookie: codehub_session=s;codehub_session=t; b=2\r\n", b"Cookie: b=2\r\n"),
    Case(
        "session cookie in another field",
        b"Cookie: a=1\r\nCookie: codehub_session=s\r\n",
        b"Cookie: a=1\r\n",
    ),
    Case("session cookie with spaces", b"Cookie: a=1;\t codehub_session =s\r\n", b"Cookie: a=1\r\n"),
    Case(
        "cookies whose names start like ours, or only contain one",
        b"Cookie: codehub_session2=x; xcodehub_session=y\r\n",
        b"Cookie: xcodehub_session=y\r\n",
    ),
    Case(
        "authorization of another scheme", b"Authorization: Basic eDp5\r\n", b"Authorization: Basic eDp5\r\n"
    ),
    Case(
        "an upgrade to HTTP/2",
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n",
        b"",
    ),
    Case("an upgrade that Connection does not name", b"Upgrade: websocket\r\n", b""),
    Case(
        "an upgrade to WebSocket",
        b"Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n",
        b"Sec-WebSocket-Key: k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_fields_are_forwarded_as_expected(harness: Harness, case: Case) -> None:
    request = b"GET /path?q=1 HTTP/1.1\r\nHost: hub.example\r\n" + case.sent + b"\r\n"
    upstream, client = harness.exchange(request, OK)
    assert upstream == b"GET /path?q=1 HTTP/1.1\r\nHost: hub.example\r\n" + case.passed + ADDED + b"\r\n"
    assert client.startswith(b"HTTP/1.1 200 OK\r\n")


def test_the_routes_target_and_headers_replace_what_the_client_sent(harness: Harness) -> None:
    address = Upstream("127.0.0.1", harness.upstream.port, keep_prefix=False, headers=(("X-Token", "added"),))
    harness.router.decide = lambda _head: harness.router.forward
    harness.router.change(upstream=address, target=b"/stripped?x")
    received, _ = harness.exchange(
        b"GET /w/1/stripped?x HTTP/1.1\r\nHost: hub.example\r\nx-token: theirs\r\n\r\n", OK
    )
    assert received == (
        b"GET /stripped?x HTTP/1.1\r\nHost: hub.example\r\n" + ADDED + b"X-Token: added\r\n\r\n"
    )


COOKIE = "session=ours"


@pytest.mark.parametrize(
    ("sent", "forwarded"),
    [
        (b"", b"Cookie: session=ours\r\n"),
        (b"Cookie: a=1; b=2\r\n", b"Cookie: session=ours; a=1; b=2\r\n"),
        (b"cookie: Session=theirs; a=1\r\nX-B: c\r\n", b"X-B: c\r\nCookie: session=ours; a=1\r\n"),
        (b"Cookie: session=theirs\r\nCookie: a=1\r\n", b"Cookie: session=ours; a=1\r\n"),
    ],
)
def test_the_upstreams_cookie_joins_those_of_the_client(
    harness: Harness, sent: bytes, forwarded: bytes
) -> None:
    address = Upstream("127.0.0.1", harness.upstream.port, keep_prefix=False, headers=(("Cookie", COOKIE),))
    harness.router.change(upstream=address)
    received, _ = harness.exchange(b"GET / HTTP/1.1\r\nHost: hub.example\r\n" + sent + b"\r\n", OK)
    assert received == b"GET / HTTP/1.1\r\nHost: hub.example\r\n" + forwarded + ADDED + b"\r\n"


def test_authorization_is_dropped_if_the_route_says_so(harness: Harness) -> None:
    harness.router.change(drop_authorization=True)
    received, _ = harness.exchange(b"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\n\r\n", OK)
    assert b"secret" not in received


def test_compression_is_not_offered_if_messages_must_be_readable(harness: Harness) -> None:
    harness.router.change(plain_messages=True)
    received, _ = harness.exchange(
        b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
        OK,
    )
    assert b"permessage-deflate" not in received


def test_a_repeated_head_is_forwarded_the_same_way_for_another_route(harness: Harness) -> None:
    request = b"GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1; b=2\r\nAuthorization: x\r\n\r\n"
    # Cached from the second time on.
    first, _ = [harness.exchange(request, OK) for _ in range(3)][-1]
    harness.router.change(drop_cookies=(b"a",), drop_authorization=True)
    second, _ = harness.exchange(request, OK)
    assert b"Cookie: a=1; b=2\r\nAuthorization: x\r\n" in first
    assert b"Cookie: b=2\r\n" in second
    assert b"Authorization" not in second


def test_http_1_0_without_a_host_gets_the_upstreams(harness: Harness) -> None:
    received, response = harness.exchange(b"GET / HTTP/1.0\r\n\r\n", OK)
    assert received.startswith(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % harness.upstream.port)
    assert response == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


@pytest.mark.parametrize("target", [b"", b"x", b"/a b", b"/a\r\nX: y", b"/\x00", b"/#"])
def test_a_target_that_would_break_the_head_is_an_internal_error(harness: Harness, target: bytes) -> None:
    harness.router.decide = lambda _head: harness.router.forward
    harness.router.change(target=target)
    client = harness.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert client.receive_head().startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert harness.upstream.accept().receive_rest() == b""
