"""Answer heads of upstreams, read as strictly as requests."""

import re
from dataclasses import dataclass
from http import HTTPStatus

from proxy.transport.forwarded_head import HOP_BY_HOP, NEVER_DROPPED, cookie_name
from proxy.transport.header_fields import FIELD, LENGTH, MAX_MEMORISED_NAMES, Framing, read_list
from proxy.transport.local_responses import BODILESS, connection_line
from proxy.transport.parse_cache import ParseCache
from proxy.transport.routing import Forward

STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*+))?+\r\n")
EVENT_STREAM = re.compile(rb"content-type:[ \t]*text/event-stream", re.IGNORECASE)
MAX_MEMORISED_BYTES = 2048
# What Connection says apart from names of fields, and names that it says in vain.
NOT_LISTED = NEVER_DROPPED | {b"close", b"keep-alive", b"upgrade"}

# An IDE shares its origin with us: it must not speak for the other paths of it.
NOT_FOR_AN_IDE_TO_SAY = frozenset({
    b"alt-svc", b"clear-site-data", b"service-worker-allowed", b"strict-transport-security",
})  # fmt: skip
CROSS_ORIGIN_PREFIX = b"access-control-"


class ResponseRefused(Exception):
    """The upstream's answer is not HTTP/1.1 as we take it."""


# What a field of an answer is to us: one of these, or the name in lower case of one that we read.
KEEP, KEEP_IF_TRUSTED, DROP = b"keep", b"keep if trusted", b"drop"
READ = frozenset({b"connection", b"content-length", b"set-cookie", b"transfer-encoding", b"upgrade"})
_roles: dict[bytes, bytes] = {}


@dataclass(slots=True)
class ResponseHead:
    """One answer without its body; `fields` are those that may be passed on, framing apart."""

    status: int
    reason: bytes
    fields: list[bytes]
    framing: Framing
    length: int
    keep_alive: bool
    upgrade: bytes | None
    # Also known where no body follows: for HEAD and 304.
    told_length: bytes | None
    chunked: bool
    # For a modern client that stays, which is nearly every one.
    rendered: bytes | None = None

    def render(self, *, modern: bool, keep_alive: bool) -> bytes:
        """The head for a client; one of HTTP/1.0 is not told of chunks."""
        if not (modern and keep_alive):
            return self._render(modern=modern, keep_alive=keep_alive)
        if self.rendered is None:
            self.rendered = self._render(modern=True, keep_alive=True)
        return self.rendered

    def _render(self, *, modern: bool, keep_alive: bool) -> bytes:
        lines = [b"HTTP/1.1 %d %b\r\n" % (self.status, self.reason), *self.fields]
        if self.told_length is not None:
            lines.append(b"Content-Length: %b\r\n" % self.told_length)
        elif self.chunked and modern:
            lines.append(b"Transfer-Encoding: chunked\r\n")
        lines.append(connection_line(modern=modern, keep_alive=keep_alive))
        return b"".join(lines)

    def is_event_stream(self) -> bool:
        return any(EVENT_STREAM.match(each) for each in self.fields)

    def render_interim(self) -> bytes:
        return b"HTTP/1.1 %d %b\r\n%b\r\n" % (self.status, self.reason, b"".join(self.fields))

    def render_upgrade(self) -> bytes:
        head = b"HTTP/1.1 101 %b\r\n%bConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        return head % (self.reason, b"".join(self.fields))


class ResponseHeadReader:
    """Reads heads of answers; a file that has not changed, or a poll without news, has the same again."""

    def __init__(self, max_bytes: int = 64 * 1024) -> None:
        self.max_bytes = max_bytes
        self._answers: ParseCache[ResponseHead] = ParseCache()

    def read(self, raw: bytes, method: bytes, route: Forward) -> ResponseHead:
        """Read one whole head, up to and with its empty line."""
        # Everything that the reading depends on.
        key = raw, method == b"HEAD", route.trusted, route.drop_cookies
        answer = self._answers.get(key)
        if answer is None:
            answer = read_response_head(raw, method, route)
            if len(raw) <= MAX_MEMORISED_BYTES:
                self._answers.offer(key, answer)
        return answer


def read_response_head(raw: bytes, method: bytes, route: Forward) -> ResponseHead:
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
        role = _roles.get(name) or role_of(name)
        if role is KEEP or may_pass(role, value, route):
            kept.append(each)
        elif role in special:
            special[role] += b"," + value
        else:
            special[role] = value
    minor, status, reason = line.groups()
    return build((int(minor), int(status), reason or b""), kept, special, method)


def build(
    line: tuple[int, int, bytes], kept: list[bytes], special: dict[bytes, bytes], method: bytes
) -> ResponseHead:
    minor, status, reason = line
    connection = read_list(special.get(b"connection", b""))
    if listed := connection - NOT_LISTED:
        kept = [each for each in kept if each.partition(b":")[0].lower() not in listed]
    told_length = special.get(b"content-length")
    coding = special.get(b"transfer-encoding")
    framing, length = read_framing(minor, told_length, coding)
    bodiless = status in BODILESS or status < HTTPStatus.OK
    if bodiless or method == b"HEAD":
        framing, length = Framing.NONE, 0
    upgrade = special.get(b"upgrade")
    says_length = told_length is not None and status >= HTTPStatus.OK and status != HTTPStatus.NO_CONTENT
    return ResponseHead(
        status=status,
        reason=reason,
        fields=kept,
        framing=framing,
        length=length,
        keep_alive=b"close" not in connection if minor else b"keep-alive" in connection,
        upgrade=upgrade.strip(b" \t").lower() if upgrade and b"upgrade" in connection else None,
        told_length=told_length.rstrip(b" \t") if told_length is not None and says_length else None,
        chunked=coding is not None and not bodiless,
    )


def read_framing(minor: int, length: bytes | None, coding: bytes | None) -> tuple[Framing, int]:
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


def role_of(name: bytes) -> bytes:
    lower = name.lower()
    if lower in READ:
        role = lower
    elif lower in HOP_BY_HOP:
        role = DROP
    elif lower in NOT_FOR_AN_IDE_TO_SAY or lower.startswith(CROSS_ORIGIN_PREFIX):
        role = KEEP_IF_TRUSTED
    else:
        role = KEEP
    if len(_roles) < MAX_MEMORISED_NAMES:
        _roles[name] = role
    return role


def may_pass(role: bytes, value: bytes, route: Forward) -> bool:
    """Whether a field that is not simply kept may pass on this route."""
    if role == b"set-cookie":
        return route.trusted or may_set(value, route.drop_cookies)
    return role is KEEP_IF_TRUSTED and route.trusted


def may_set(cookie: bytes, ours: frozenset[bytes]) -> bool:
    """Whether a Set-Cookie leaves our cookies alone; one without a name can pose as any other."""
    name = cookie_name(cookie.partition(b";")[0])
    return bool(name) and all(name != each.lower() for each in ours)
