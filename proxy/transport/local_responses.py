"""Answers of our own, as bytes."""

from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time

from proxy.transport.forwarded_head import encode
from proxy.transport.routing import Response, Stream

BODILESS = frozenset({204, 304})
PHRASES = {status.value: status.phrase for status in HTTPStatus}


def render_response(answer: Response, *, method: bytes, modern: bool, keep_alive: bool) -> bytes:
    """An answer of our own, with its length and its body."""
    bodiless = answer.status in BODILESS
    lines = own_lines(answer)
    if not bodiless:
        lines.append(b"Content-Length: %d\r\n" % len(answer.body))
    lines.append(connection_line(modern=modern, keep_alive=keep_alive))
    if method != b"HEAD" and not bodiless:
        lines.append(answer.body)
    return b"".join(lines)


def render_stream_head(stream: Stream, *, modern: bool, keep_alive: bool) -> bytes:
    """The head of an answer of our own whose length nobody knows yet."""
    lines = own_lines(stream)
    if modern and stream.status not in BODILESS:
        lines.append(b"Transfer-Encoding: chunked\r\n")
    lines.append(connection_line(modern=modern, keep_alive=keep_alive))
    return b"".join(lines)


def own_lines(answer: Response | Stream) -> list[bytes]:
    phrase = encode(PHRASES.get(answer.status, ""))
    fields = [b"%b: %b\r\n" % (encode(name), encode(value)) for name, value in answer.headers]
    return [b"HTTP/1.1 %d %b\r\n" % (answer.status, phrase), date_line(int(time())), *fields]


@lru_cache(maxsize=1)
def date_line(second: int) -> bytes:
    return b"Date: %b\r\n" % encode(formatdate(second, usegmt=True))


def plain_response(status: int, reason: str) -> Response:
    """What the transport says by itself; pages for people are the router's."""
    return Response(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{reason}\n".encode())


def connection_line(*, modern: bool, keep_alive: bool) -> bytes:
    """The last field of a head and its empty line; what the version implies is left unsaid."""
    if modern == keep_alive:
        return b"\r\n"
    return b"Connection: keep-alive\r\n\r\n" if keep_alive else b"Connection: close\r\n\r\n"
