"""Response heads of upstreams, parsed as strictly as requests."""

import re
from dataclasses import dataclass
from http import HTTPStatus

from proxy.transport.bodies import Framing
from proxy.transport.header_fields import (
    BODILESS,
    CONNECTION_OPTIONS,
    FIELD,
    HOP_BY_HOP,
    LENGTH,
    MAX_CACHED_NAMES,
    NEVER_DROPPED,
    ParseCache,
    connection_line,
    cookie_name,
    parse_list,
)
from proxy.transport.routing import Forward

STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*+))?+\r\n")
EVENT_STREAM = re.compile(rb"content-type:[ \t]*text/event-stream", re.IGNORECASE)
MAX_CACHED_BYTES = 2048
# Listing these in `Connection` removes no field.
NOT_REMOVABLE = NEVER_DROPPED | CONNECTION_OPTIONS

# An IDE must not set policies for its whole domain, or for CodeHub's pages on its origin.
ORIGIN_WIDE = frozenset({
    b"alt-svc", b"clear-site-data", b"service-worker-allowed", b"strict-transport-security",
})  # fmt: skip
CROSS_ORIGIN_PREFIX = b"access-control-"

# The treatment of a field: one of these, or its lowercase name if the proxy reads its value.
KEEP, KEEP_IF_TRUSTED, DROP = b"keep", b"keep if trusted", b"drop"
READ = frozenset({b"connection", b"content-length", b"set-cookie", b"transfer-encoding", b"upgrade"})
_treatments: dict[bytes, bytes] = {}


class ResponseRefused(Exception):
    """The upstream's response is malformed or ambiguous."""


@dataclass(slots=True)
class ResponseHead:
    """One response without its body; `fields` are the lines to forward, without those for framing."""

    status: int
    reason: bytes
    fields: list[bytes]
    framing: Framing
    length: int
    keep_alive: bool
    upgrade: bytes | None
    # Set even where no body follows: for HEAD and 304.
    declared_length: bytes | None
    chunked: bool
    # The rendered head for HTTP/1.1 with keep-alive, which nearly every client uses.
    rendered: bytes | None = None

    def render(self, *, http11: bool, keep_alive: bool) -> bytes:
        """Return the head for a client; one of HTTP/1.0 gets no chunks."""
        if not (http11 and keep_alive):
            return self._render(http11=http11, keep_alive=keep_alive)
        if self.rendered is None:
            self.rendered = self._render(http11=True, keep_alive=True)
        return self.rendered

    def _render(self, *, http11: bool, keep_alive: bool) -> bytes:
        lines = [b"HTTP/1.1 %d %b\r\n" % (self.status, self.reason), *self.fields]
        if self.declared_length is not None:
            lines.append(b"Content-Length: %b\r\n" % self.declared_length)
        elif self.chunked and http11:
            lines.append(b"Transfer-Encoding: chunked\r\n")
        lines.append(connection_line(http11=http11, keep_alive=keep_alive))
        return b"".join(lines)

    def is_event_stream(self) -> bool:
        return any(EVENT_STREAM.match(each) for each in self.fields)

    def render_interim(self) -> bytes:
        return b"HTTP/1.1 %d %b\r\n%b\r\n" % (self.status, self.reason, b"".join(self.fields))

    def render_upgrade(self) -> bytes:
        head = b"HTTP/1.1 101 %b\r\n%bConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        return head % (self.reason, b"".join(self.fields))


class ResponseHeadReader:
    """Parses heads; caches them, because unchanged files and polls without news repeat the same one."""

    def __init__(self, max_bytes: int = 64 * 1024) -> None:
        self.max_bytes = max_bytes
        self._heads: ParseCache[ResponseHead] = ParseCache()

    def read(self, raw: bytes, method: bytes, route: Forward) -> ResponseHead:
        """Parse a complete head, including its empty line. Raise ResponseRefused."""
        # Everything that the result depends on.
        key = raw, method == b"HEAD", route.trusted, route.drop_cookies
        head = self._heads.get(key)
        if head is None:
            head = parse_response_head(raw, method, route)
            if len(raw) <= MAX_CACHED_BYTES:
                self._heads.offer(key, head)
        return head


def parse_response_head(raw: bytes, method: bytes, route: Forward) -> ResponseHead:
    line = STATUS_LINE.match(raw)
    if line is None:
        raise ResponseRefused("malformed status line")
    start = line.end()
    found = FIELD.findall(raw, start)
    if sum([len(each) for each, _, _ in found]) + 2 != len(raw) - start:
        raise ResponseRefused("malformed field")
    special: dict[bytes, bytes] = {}
    kept = []
    for each, name, value in found:
        treatment = _treatments.get(name) or treatment_of(name)
        if treatment is KEEP or may_pass(treatment, value, route):
            kept.append(each)
        elif treatment in special:
            special[treatment] += b"," + value
        else:
            special[treatment] = value
    minor, status, reason = line.groups()
    return build_head((int(minor), int(status), reason or b""), kept, special, method)


def build_head(
    line: tuple[int, int, bytes], kept: list[bytes], special: dict[bytes, bytes], method: bytes
) -> ResponseHead:
    minor, status, reason = line
    connection = parse_list(special.get(b"connection", b""))
    if listed := connection - NOT_REMOVABLE:
        kept = [each for each in kept if each.partition(b":")[0].lower() not in listed]
    length_field = special.get(b"content-length")
    coding = special.get(b"transfer-encoding")
    framing, length = parse_framing(minor, length_field, coding)
    bodiless = status in BODILESS or status < HTTPStatus.OK
    if bodiless or method == b"HEAD":
        framing, length = Framing.NONE, 0
    upgrade = special.get(b"upgrade")
    may_declare = status >= HTTPStatus.OK and status != HTTPStatus.NO_CONTENT
    return ResponseHead(
        status=status,
        reason=reason,
        fields=kept,
        framing=framing,
        length=length,
        keep_alive=b"close" not in connection if minor else b"keep-alive" in connection,
        upgrade=upgrade.strip(b" \t").lower() if upgrade and b"upgrade" in connection else None,
        declared_length=length_field.rstrip(b" \t") if length_field is not None and may_declare else None,
        chunked=coding is not None and not bodiless,
    )


def parse_framing(minor: int, length: bytes | None, coding: bytes | None) -> tuple[Framing, int]:
    if coding is not None:
        if length is not None or not minor or coding.rstrip(b" \t") != b"chunked":
            raise ResponseRefused("ambiguous framing")
        return Framing.CHUNKED, 0
    if length is None:
        return Framing.CLOSE, 0
    length = length.rstrip(b" \t")
    if LENGTH.fullmatch(length) is None:
        raise ResponseRefused("malformed content-length")
    return Framing.LENGTH, int(length)


def treatment_of(name: bytes) -> bytes:
    lower = name.lower()
    if lower in READ:
        treatment = lower
    elif lower in HOP_BY_HOP:
        treatment = DROP
    elif lower in ORIGIN_WIDE or lower.startswith(CROSS_ORIGIN_PREFIX):
        treatment = KEEP_IF_TRUSTED
    else:
        treatment = KEEP
    if len(_treatments) < MAX_CACHED_NAMES:
        _treatments[name] = treatment
    return treatment


def may_pass(treatment: bytes, value: bytes, route: Forward) -> bool:
    """Return whether a field that is not always kept may pass on this route."""
    if treatment == b"set-cookie":
        return route.trusted or may_set(value, route.drop_cookies)
    return treatment is KEEP_IF_TRUSTED and route.trusted


def may_set(cookie: bytes, reserved: tuple[bytes, ...]) -> bool:
    """Return whether a Set-Cookie is allowed: no reserved name, and no Domain.

    A cookie without a name could pose as any.
    """
    pair, *attributes = cookie.split(b";")
    name = cookie_name(pair)
    if not name or name.startswith(reserved):
        return False
    return all(cookie_name(each) != b"domain" for each in attributes)
