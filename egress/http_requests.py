"""HTTP proxy requests: CONNECT, and requests with an absolute URL."""

import re
from dataclasses import dataclass
from typing import NoReturn

from codehub.domain.egress import LAST_PORT, Refusal, parse_host
from egress.target import REASONS, BadRequest, Failure, Target

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
HEAD_END = b"\r\n\r\n"
HTTP_PORT = 80
_REQUEST_LINE = re.compile(rb"([A-Z]{1,20}) ([!-~]{1,8192}) HTTP/1\.[01]")
_AUTHORITY = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#]+)(?::([0-9]{1,5}))?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")
# Hop-by-hop headers. The server gets `Connection: close` instead.
_HOP_BY_HOP = frozenset((b"connection", b"keep-alive", b"proxy-authorization", b"proxy-connection"))
_STATUS = {
    Failure.UNKNOWN_NAME: b"502 Bad Gateway",
    Failure.UNREACHABLE: b"502 Bad Gateway",
    Failure.TIMEOUT: b"504 Gateway Timeout",
    Failure.TOO_MANY: b"503 Service Unavailable",
    Failure.NO_POLICY: b"503 Service Unavailable",
}


@dataclass(frozen=True)
class HttpRequest:
    """A request over HTTP; the client gets HTTP responses."""

    target: Target
    initial_data: bytes = b""

    def established(self) -> bytes:
        # The server itself responds to a forwarded request.
        return b"" if self.initial_data else ESTABLISHED

    def refused(self, refusal: Refusal) -> bytes:
        return _response(b"403 Forbidden", f"{self.target.host} is refused: {REASONS[refusal]}.")

    def failed(self, failure: Failure) -> bytes:
        return _response(_STATUS[failure], f"{self.target.host}: {failure.value}.")


def parse_http(head: bytes) -> HttpRequest:
    """Parse a request head, without its empty line. Raise BadRequest."""
    line, *fields = head.split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        _refuse("This is a proxy; it takes CONNECT and requests with a full http:// URL.")
    method, target = match.groups()
    if method == b"CONNECT":
        host, port = _parse_authority(target, None)
        return HttpRequest(Target(host, port))
    if not target.lower().startswith(b"http://"):
        _refuse("This proxy takes CONNECT and http:// URLs; use CONNECT for https.")
    authority, path = _split_url(target)
    host, port = _parse_authority(authority, HTTP_PORT)
    return HttpRequest(Target(host, port), _origin_form(line, target, path, authority, fields))


def too_large() -> bytes:
    return _response(b"431 Request Header Fields Too Large", "The head of the request is too large.")


def _origin_form(line: bytes, target: bytes, path: bytes, authority: bytes, fields: list[bytes]) -> bytes:
    """Return the head for the server: one request per connection, to the host that was checked."""
    kept = []
    for each in fields:
        field = _FIELD.fullmatch(each)
        if field is None:
            _refuse("A header field of the request is malformed.")
        if field[1].lower() not in _HOP_BY_HOP and field[1].lower() != b"host":
            kept.append(each)
    head = [line.replace(target, path, 1), b"Host: " + authority, *kept, b"Connection: close", b"", b""]
    return b"\r\n".join(head)


def _split_url(url: bytes) -> tuple[bytes, bytes]:
    rest = url[len(b"http://") :].partition(b"#")[0]
    end = min((found for mark in (b"/", b"?") if (found := rest.find(mark)) >= 0), default=len(rest))
    path = rest[end:]
    return rest[:end], path if path.startswith(b"/") else b"/" + path


def _parse_authority(authority: bytes, default_port: int | None) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(authority)
    port = int(match[2]) if match and match[2] else default_port
    if match is None or port is None or not 0 < port <= LAST_PORT:
        _refuse("The address of the request is not host:port.")
    host = parse_host(match[1].decode("latin-1"))
    if host is None:
        raise BadRequest(_response(b"403 Forbidden", f"Refused: {REASONS[Refusal.INVALID_NAME]}."))
    return host, port


def _refuse(message: str) -> NoReturn:
    raise BadRequest(_response(b"400 Bad Request", message))


def _response(status: bytes, message: str) -> bytes:
    body = f"CodeHub: {message}\n".encode()
    return (
        b"HTTP/1.1 %b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"
        b"Connection: close\r\n\r\n%b" % (status, len(body), body)
    )
