"""Fuzzing: the upstream sees only accepted requests, however the data is split, and nothing hangs."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codehub.ports import Upstream
from proxy.transport.server_state import Timeouts
from tests.proxy.h11_upstream import PLAIN_RESPONSE, H11Upstream, Seen, read_responses
from tests.proxy.harness import Harness

EXAMPLES = settings(max_examples=300, deadline=None)

HEADS = (
    b"GET /a HTTP/1.1\r\nHost: h\r\n",
    b"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n",
    b"POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n",
    b"GET /d HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
    b"HEAD /e HTTP/1.0\r\nConnection: keep-alive\r\n",
    b"PUT /f HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n",
)
FIELDS = (
    b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"Content-Length: 5, 5\r\n", b"Content-Length:+5\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding:\tchunked \r\n", b"Transfer-Encoding: Chunked\r\n",
    b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Transfer_Encoding: chunked\r\n",
    b"Connection: close\r\n", b"Connection: Content-Length, Transfer-Encoding, Host\r\n", b"Host: other\r\n",
    b"X: y\r\n z\r\n", b"X: y\n", b"X: y\r", b"X:\x00\r\n", b"X-Y: \xff\r\n",
    b"Cookie: a=b; codehub_session=s\r\n",
)  # fmt: skip
BODIES = (
    b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"0\r\n\r\n", b"5;x=y\r\nhello\r\n0\r\nTrailer: t\r\n\r\n", b"abc",
    b"5\nhello\r\n0\r\n\r\n", b"+5\r\nhello\r\n0\r\n\r\n", b"00000000000000005\r\nhello\r\n0\r\n\r\n", b"",
    b"GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n", b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: h\r\n\r\n",
)  # fmt: skip
TOKENS = (
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b"\x00",
    b":",
    b";",
    b",",
    b"0",
    b"5",
    b"\r\n\r\n",
    b"chunked",
    b"\xff",
)

requests = st.builds(
    lambda head, fields, body: head + b"".join(fields) + b"\r\n" + body,
    st.sampled_from(HEADS),
    st.lists(st.sampled_from(FIELDS), max_size=3),
    st.sampled_from(BODIES),
)
mutations = st.lists(st.tuples(st.integers(0, 600), st.integers(0, 4), st.sampled_from(TOKENS)), max_size=3)
cuts = st.lists(st.integers(1, 80), max_size=12)


def mutate(stream: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """Replace bytes at some positions with tokens."""
    for place, length, token in changes:
        position = place % (len(stream) + 1)
        stream = stream[:position] + token + stream[position + length :]
    return stream


def pieces_of(stream: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(stream[:size])
        stream = stream[size:]
    return [piece for piece in [*pieces, stream] if piece]


@pytest.fixture(scope="module")
def h11_upstream() -> H11Upstream:
    return H11Upstream()


@pytest.fixture(scope="module")
def fuzz_harness(h11_upstream: H11Upstream) -> Iterator[Harness]:
    harness = Harness()
    harness.start(timeouts=Timeouts(linger=1))
    port = harness.run(h11_upstream.listen())
    harness.router.change(upstream=Upstream("127.0.0.1", port, keep_prefix=True))
    yield harness
    harness.drain()
    harness.run(h11_upstream.close())
    harness.close()


def converse(harness: Harness, pieces: list[bytes]) -> bytes:
    """Send the pieces, close the sending side, and return everything received."""
    harness.router.heads.clear()
    with harness.connect() as client:
        try:
            for piece in pieces:
                client.send(piece)
            client.half_close()
        except OSError:
            # The proxy has closed already; its response can still be read.
            pass
        return client.receive_until_lost()


@EXAMPLES
@given(stream=st.lists(requests, min_size=1, max_size=4).map(b"".join), changes=mutations, sizes=cuts)
def test_the_upstream_sees_only_what_was_accepted(
    fuzz_harness: Harness,
    h11_upstream: H11Upstream,
    stream: bytes,
    changes: list[tuple[int, int, bytes]],
    sizes: list[int],
) -> None:
    h11_upstream.forget()
    received = converse(fuzz_harness, pieces_of(mutate(stream, changes), sizes))
    heads = list(fuzz_harness.router.heads)
    assert h11_upstream.violations == []
    # Complete requests, in order; only the last one may be truncated, or refused because of its body.
    seen = [(request.method, request.target) for request in h11_upstream.requests]
    assert seen == [(head.method, head.target) for head in heads][: len(seen)]
    assert len(heads) - len(seen) <= 1
    assert all(
        b"codehub_session" not in value for request in h11_upstream.requests for _, value in request.fields
    )
    # One response for each request, and perhaps a refusal after the last one.
    statuses, _ = read_responses(received, [*(head.method for head in heads), b"GET"])
    assert statuses[: len(seen)] == [200] * len(seen)
    assert fuzz_harness.server.counters.errors == 0
    assert fuzz_harness.escaped == []


@EXAMPLES
@given(stream=st.binary(max_size=2000), sizes=cuts)
def test_any_bytes_get_a_response_or_a_refusal(
    fuzz_harness: Harness, h11_upstream: H11Upstream, stream: bytes, sizes: list[int]
) -> None:
    h11_upstream.forget()
    converse(fuzz_harness, pieces_of(stream, sizes))
    assert h11_upstream.violations == []
    assert len(h11_upstream.requests) <= len(fuzz_harness.router.heads)
    assert fuzz_harness.escaped == []


names = st.text("abcXYZ-!#$%&'*+.^`|~019", min_size=1, max_size=12).map(lambda name: f"X-{name}".encode())
values = st.binary(max_size=30).map(lambda value: bytes(byte for byte in value if byte > 32 and byte != 127))
bodies = st.one_of(
    st.none(), st.binary(max_size=400), st.lists(st.binary(min_size=1, max_size=60), max_size=6)
)


def render(number: int, fields: list[tuple[bytes, bytes]], body: bytes | list[bytes] | None) -> bytes:
    lines = [b"POST /%d HTTP/1.1" % number, b"Host: h", *(name + b": " + value for name, value in fields)]
    if isinstance(body, bytes):
        lines.append(b"Content-Length: %d" % len(body))
        end = body
    elif body is not None:
        lines.append(b"Transfer-Encoding: chunked")
        end = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in body) + b"0\r\n\r\n"
    else:
        end = b""
    return b"\r\n".join(lines) + b"\r\n\r\n" + end


@EXAMPLES
@given(
    parts=st.lists(st.tuples(st.lists(st.tuples(names, values), max_size=5), bodies), min_size=1, max_size=5),
    sizes=cuts,
)
def test_valid_requests_reach_the_upstream_unchanged(
    fuzz_harness: Harness,
    h11_upstream: H11Upstream,
    parts: list[tuple[list[tuple[bytes, bytes]], bytes | list[bytes] | None]],
    sizes: list[int],
) -> None:
    h11_upstream.forget()
    stream = b"".join(render(number, fields, body) for number, (fields, body) in enumerate(parts))
    received = converse(fuzz_harness, pieces_of(stream, sizes))
    assert [strip(request) for request in h11_upstream.requests] == [
        (b"/%d" % number, [(name.lower(), value) for name, value in fields], flat(body))
        for number, (fields, body) in enumerate(parts)
    ]
    assert received == PLAIN_RESPONSE * len(parts)


def strip(request: Seen) -> tuple[bytes, list[tuple[bytes, bytes]], bytes]:
    """Return a request without the fields that the proxy adds, and without those for framing."""
    added = {b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"}
    own = [(name, value) for name, value in request.fields if name.startswith(b"x-") and name not in added]
    return request.target, own, request.body


def flat(body: bytes | list[bytes] | None) -> bytes:
    return b"".join(body) if isinstance(body, list) else body or b""


RESPONSES = (
    PLAIN_RESPONSE,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end",
    b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
)


@EXAMPLES
@given(
    response=st.sampled_from(RESPONSES),
    fields=st.lists(st.sampled_from(FIELDS), max_size=2),
    changes=mutations,
    method=st.sampled_from([b"GET", b"HEAD"]),
)
def test_the_client_gets_valid_http_whatever_the_upstream_sends(
    fuzz_harness: Harness,
    h11_upstream: H11Upstream,
    response: bytes,
    fields: list[bytes],
    changes: list[tuple[int, int, bytes]],
    method: bytes,
) -> None:
    h11_upstream.forget()
    line, _, rest = response.partition(b"\r\n")
    h11_upstream.response, h11_upstream.closes = (
        mutate(line + b"\r\n" + b"".join(fields) + rest, changes),
        True,
    )
    try:
        received = converse(fuzz_harness, [method + b" / HTTP/1.1\r\nHost: h\r\n\r\n"])
    finally:
        h11_upstream.response, h11_upstream.closes = PLAIN_RESPONSE, False
    statuses, whole = read_responses(received, [method])
    assert len(statuses) <= 1
    assert statuses or not whole or received == b""
    assert b"Access-Control" not in received
    assert fuzz_harness.server.counters.errors == 0
    assert fuzz_harness.escaped == []
