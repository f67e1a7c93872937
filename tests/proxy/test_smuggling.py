"""Request smuggling: every known trick is refused, or means the same to both servers."""

from typing import NamedTuple

import pytest

from tests.proxy.harness import Harness

LINE = b"GET / HTTP/1.1\r\n"
HOST = b"Host: h\r\n"
POST = b"POST / HTTP/1.1\r\nHost: h\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"


class Refused(NamedTuple):
    """A head that must be refused."""

    name: str
    request: bytes
    status: int
    reason: bytes


HEADS = (
    Refused("CL.TE", POST + b"Content-Length: 6\r\n" + CHUNKED + b"\r\n0\r\n\r\nG", 400, b"two framings"),
    Refused("TE.CL", POST + CHUNKED + b"Content-Length: 4\r\n\r\n5c\r\nGPOST", 400, b"two framings"),
    Refused("TE.TE", POST + CHUNKED + b"Transfer-Encoding: x\r\n\r\n", 400, b"duplicate transfer-encoding"),
    Refused("chunked twice", POST + CHUNKED + CHUNKED + b"\r\n", 400, b"duplicate transfer-encoding"),
    Refused("xchunked", POST + b"Transfer-Encoding: xchunked\r\n\r\n", 501, b"transfer-encoding"),
    Refused("identity", POST + b"Transfer-Encoding: identity\r\n\r\n", 501, b"transfer-encoding"),
    Refused("gzip, chunked", POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501, b"transfer-encoding"),
    Refused(
        "chunked, chunked", POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n", 501, b"transfer-encoding"
    ),
    Refused(
        "chunked, identity", POST + b"Transfer-Encoding: chunked, identity\r\n\r\n", 501, b"transfer-encoding"
    ),
    Refused("quoted", POST + b'Transfer-Encoding: "chunked"\r\n\r\n', 501, b"transfer-encoding"),
    Refused("other case", POST + b"Transfer-Encoding: cHuNkEd\r\n\r\n", 501, b"transfer-encoding"),
    Refused("parameter", POST + b"Transfer-Encoding: chunked;q=1\r\n\r\n", 501, b"transfer-encoding"),
    Refused("empty coding", POST + b"Transfer-Encoding:\r\n\r\n", 501, b"transfer-encoding"),
    Refused("vertical tab", POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n", 400, b"control character"),
    Refused(
        "non-breaking space", POST + b"Transfer-Encoding: \xa0chunked\r\n\r\n", 501, b"transfer-encoding"
    ),
    Refused("NUL", POST + b"Transfer-Encoding: chunked\x00\r\n\r\n", 400, b"control character"),
    Refused("space before colon", POST + b"Transfer-Encoding : chunked\r\n\r\n", 400, b"space in field name"),
    Refused("tab before colon", POST + b"Transfer-Encoding\t: chunked\r\n\r\n", 400, b"space in field name"),
    Refused("space in name", POST + b"Transfer Encoding: chunked\r\n\r\n", 400, b"space in field name"),
    Refused("leading space", POST + b" Transfer-Encoding: chunked\r\n\r\n", 400, b"folded field"),
    Refused("fold", POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n", 400, b"folded field"),
    Refused("tab fold", POST + b"X: y\r\n\tTransfer-Encoding: chunked\r\n\r\n", 400, b"folded field"),
    Refused("first field folded", LINE + b" X: y\r\n" + HOST + b"\r\n", 400, b"folded field"),
    Refused("no colon", POST + b"Transfer-Encoding\r\n\r\n", 400, b"field"),
    Refused("no name", POST + b": chunked\r\n\r\n", 400, b"field"),
    Refused("NUL in name", POST + b"Transfer\x00-Encoding: chunked\r\n\r\n", 400, b"control character"),
    Refused("byte in name", POST + b"Transfer-Encoding\xff: chunked\r\n\r\n", 400, b"field"),
    Refused("bare CR", POST + b"X: y\rTransfer-Encoding: chunked\r\n\r\n", 400, b"field"),
    Refused("bare CR at the end", POST + b"X: y\r\r\n\r\n", 400, b"field"),
    Refused("bare LF", POST + b"X: y\nTransfer-Encoding: chunked\r\n\r\n", 400, b"bare line feed"),
    Refused("only LF", b"GET / HTTP/1.1\nHost: h\n\n", 400, b"bare line feed"),
    Refused("LF LF", POST + b"X: y\n\n", 400, b"bare line feed"),
    Refused("LF CR LF", POST + b"X: y\n\r\n", 400, b"bare line feed"),
    Refused("CL list", POST + b"Content-Length: 5, 5\r\n\r\n", 400, b"content-length"),
    Refused(
        "CL twice", POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400, b"duplicate content-length"
    ),
    Refused(
        "CL differs",
        POST + b"Content-Length: 5\r\ncontent-length: 6\r\n\r\n",
        400,
        b"duplicate content-length",
    ),
    Refused("CL plus", POST + b"Content-Length: +1\r\n\r\n", 400, b"content-length"),
    Refused("CL minus", POST + b"Content-Length: -1\r\n\r\n", 400, b"content-length"),
    Refused("CL hex", POST + b"Content-Length: 0x5\r\n\r\n", 400, b"content-length"),
    Refused("CL underscore", POST + b"Content-Length: 1_0\r\n\r\n", 400, b"content-length"),
    Refused("CL fraction", POST + b"Content-Length: 5.0\r\n\r\n", 400, b"content-length"),
    Refused("CL empty", POST + b"Content-Length:\r\n\r\n", 400, b"content-length"),
    Refused("CL other digits", POST + b"Content-Length: \xd9\xa5\r\n\r\n", 400, b"content-length"),
    Refused("CL overflow", POST + b"Content-Length: 18446744073709551617\r\n\r\n", 400, b"content-length"),
    Refused(
        "TE with 1.0", b"POST / HTTP/1.0\r\n" + CHUNKED + b"\r\n", 400, b"transfer-encoding with HTTP/1.0"
    ),
    Refused("no host", LINE + b"\r\n", 400, b"missing host"),
    Refused("two hosts", LINE + HOST + HOST + b"\r\n", 400, b"duplicate host"),
    Refused("empty host", LINE + b"Host:\r\n\r\n", 400, b"malformed host"),
    Refused("host list", LINE + b"Host: a, b\r\n\r\n", 400, b"malformed host"),
    Refused("host with path", LINE + b"Host: a/b\r\n\r\n", 400, b"malformed host"),
    Refused("host with user", LINE + b"Host: a@b\r\n\r\n", 400, b"malformed host"),
    Refused("two origins", LINE + HOST + b"Origin: a\r\nOrigin: b\r\n\r\n", 400, b"duplicate origin"),
    Refused(
        "two authorizations",
        LINE + HOST + b"Authorization: a\r\n" * 2 + b"\r\n",
        400,
        b"duplicate authorization",
    ),
    Refused("absolute-form", b"GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"absolute-form target"),
    Refused("asterisk-form", b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"asterisk-form target"),
    Refused("authority-form", b"CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"absolute-form target"),
    Refused("CONNECT with path", b"CONNECT / HTTP/1.1\r\nHost: h\r\n\r\n", 405, b"method"),
    Refused("TRACE", b"TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", 405, b"method"),
    Refused("no target", b"GET HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("two spaces", b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("space in target", b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("tab for space", b"GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("space at the end", b"GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("space at the start", b" GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("empty line first", b"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("fragment", b"GET /# HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("control in target", b"GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("byte in target", b"GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("small method", b"get / HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("bracket method", b"G(T / HTTP/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("HTTP/0.9", b"GET /\r\n\r\n", 400, b"request line"),
    Refused("HTTP/1.2", b"GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505, b"unknown version"),
    Refused("HTTP/2.0", b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, b"unknown version"),
    Refused("HTTP/1.10", b"GET / HTTP/1.10\r\nHost: h\r\n\r\n", 505, b"unknown version"),
    Refused("http", b"GET / http/1.1\r\nHost: h\r\n\r\n", 400, b"request line"),
    Refused("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, b"asterisk-form target"),
    Refused("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, b"request line"),
    Refused("expectation", LINE + HOST + b"Expect: miracles\r\n\r\n", 417, b"expectation"),
    Refused("fields", LINE + HOST + b"A: b\r\n" * 100 + b"\r\n", 431, b"too many fields"),
    Refused("large", LINE + HOST + b"A: " + b"b" * 33_000 + b"\r\n\r\n", 431, b"head too large"),
    Refused(
        "large target", b"GET /" + b"a" * 33_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n", 431, b"head too large"
    ),
    Refused("endless", LINE + HOST + b"A: " + b"b" * 33_000, 431, b"head too large"),
)

CHUNKS = {
    "plus": b"+5\r\nhello\r\n0\r\n\r\n",
    "minus": b"-5\r\nhello\r\n0\r\n\r\n",
    "0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "leading space": b" 5\r\nhello\r\n0\r\n\r\n",
    "trailing space": b"5 \r\nhello\r\n0\r\n\r\n",
    "trailing tab": b"5\t\r\nhello\r\n0\r\n\r\n",
    "underscore": b"1_0\r\nhello\r\n0\r\n\r\n",
    "empty size": b"\r\nhello\r\n0\r\n\r\n",
    "no size but extension": b";a\r\nhello\r\n0\r\n\r\n",
    "not hex": b"g\r\nhello\r\n0\r\n\r\n",
    "overflow": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "LF after size": b"5\nhello\r\n0\r\n\r\n",
    "CR after size": b"5\rhello\r\n0\r\n\r\n",
    "CR CR LF after size": b"5\r\r\nhello\r\n0\r\n\r\n",
    "LF in extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "CR in extension": b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "NUL in extension": b"5;a\x00\r\nhello\r\n0\r\n\r\n",
    "space before extension": b"5 ;a\r\nhello\r\n0\r\n\r\n",
    "endless extension": b"5;" + b"a" * 300 + b"\r\nhello\r\n0\r\n\r\n",
    "LF after data": b"5\r\nhello\n0\r\n\r\n",
    "no CRLF after data": b"5\r\nhello0\r\n\r\n",
    "CR after data": b"5\r\nhello\r0\r\n\r\n",
    "data too long": b"5\r\nhello!\r\n0\r\n\r\n",
    "data too short": b"5\r\nhell\r\n0\r\n\r\n",
    "LF at the end": b"5\r\nhello\r\n0\r\n\n",
    "LF after last size": b"5\r\nhello\r\n0\n\r\n",
    "folded trailer": b"5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n",
    "space in trailer's name": b"5\r\nhello\r\n0\r\nA : b\r\n\r\n",
    "LF in trailers": b"5\r\nhello\r\n0\r\nA: b\nC: d\r\n\r\n",
    "request as trailer": b"5\r\nhello\r\n0\r\nGET / HTTP/1.1\r\n\r\n",
    "endless trailers": b"5\r\nhello\r\n0\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
}


@pytest.mark.parametrize("case", HEADS, ids=[case.name for case in HEADS])
def test_an_ambiguous_head_is_refused(harness: Harness, case: Refused) -> None:
    response = harness.refused(case.request)
    assert response.startswith(b"HTTP/1.1 %d " % case.status)
    assert response.endswith(b"Connection: close\r\n\r\n" + case.reason + b"\n")
    assert response.count(b"HTTP/1.1 ") <= 1 + case.reason.count(b"HTTP/1.")
    assert harness.server.counters.refusals == {case.reason.decode(): 1}
    assert harness.router.heads == []


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_ambiguous_chunks_end_both_connections(harness: Harness, chunks: bytes) -> None:
    client = harness.connect()
    client.send(POST + CHUNKED + b"\r\n")
    upstream = harness.upstream.accept()
    upstream.receive_head()
    client.send(chunks + HIDDEN)
    assert client.receive_rest().startswith(b"HTTP/1.1 400 Bad Request\r\n")
    # The upstream may have seen the valid beginning, but no end and nothing after it.
    assert upstream.receive_until_lost() in {b"", b"5\r\nhello", b"5\r\nhello\r\n", b"5\r\nhell\r\n"}
    assert harness.upstream.is_untouched()
    assert len(harness.router.heads) == 1
    assert harness.server.counters.errors == 0


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_ambiguous_chunks_that_arrive_with_their_head_never_reach_the_upstream(
    harness: Harness, chunks: bytes
) -> None:
    client = harness.connect()
    client.send(POST + CHUNKED + b"\r\n" + chunks + HIDDEN)
    assert client.receive_rest().startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert harness.upstream.accept().receive_until_lost() == b""
    assert len(harness.router.heads) == 1


GOOD_CHUNKS = {
    "plain": (b"5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    "many": (b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"),
    "zeros before the size": (b"0005\r\nhello\r\n000\r\n\r\n", b"0005\r\nhello\r\n0\r\n\r\n"),
    "hex in both cases": (b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n",) * 2,
    "extension": (b'5;a="b c"\r\nhello\r\n0;x\r\n\r\n', b'5;a="b c"\r\nhello\r\n0\r\n\r\n'),
    "data that looks like the end": (b"7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n",) * 2,
    "trailers": (b"5\r\nhello\r\n0\r\nHost: evil\r\nA: b\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    "nothing": (b"0\r\n\r\n", b"0\r\n\r\n"),
}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
@pytest.mark.parametrize(("sent", "passed"), GOOD_CHUNKS.values(), ids=GOOD_CHUNKS)
def test_valid_chunks_pass_however_they_are_split_and_so_does_the_next_request(
    harness: Harness, sent: bytes, passed: bytes, size: int
) -> None:
    client = harness.connect()
    client.send_in_pieces(POST + CHUNKED + b"\r\n" + sent + HIDDEN, size)
    upstream = harness.upstream.accept()
    upstream.receive_head()
    assert upstream.receive_exactly(len(passed)) == passed
    assert not upstream.has_input()
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    client.receive_head()
    assert upstream.receive_head().startswith(b"GET /hidden HTTP/1.1\r\n")
