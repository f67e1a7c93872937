"""Request heads for upstreams, without the fields that concern only the client's connection."""

from functools import lru_cache

from proxy.transport.header_fields import (
    CONNECTION_OPTIONS,
    HOP_BY_HOP,
    MAX_CACHED_NAMES,
    NEVER_DROPPED,
    cookie_name,
    encode,
)
from proxy.transport.request_head import TARGET, RequestHead
from proxy.transport.routing import Forward, Upstream

# Only the proxy may say where a request came from.
FORWARDING = frozenset({b"forwarded", b"via", b"x-real-ip"})
FORWARDING_PREFIX = b"x-forwarded-"
# The proxy writes `Host` itself, as the first field.
NEVER_PASSED = HOP_BY_HOP | FORWARDING | {b"host"}

# The treatment of a field: one of these, or its lowercase name if its value must be checked.
PASS, DROP = b"pass", b"drop"
CHECKED = frozenset({b"authorization", b"cookie", b"sec-websocket-extensions"})
COOKIE_LINE = b"\r\ncookie: "
# By name as sent: the treatment, and the start of the field's line, after the end of the previous line.
_treatments: dict[bytes, tuple[bytes, bytes]] = {}


class ForwardedHeads:
    """Builds heads for upstreams; each field block caches its last result."""

    def __init__(self, scheme: str = "http") -> None:
        self._scheme = scheme.encode("ascii")

    def request_head(self, head: RequestHead, route: Forward, peer: str) -> bytes:
        if route.target is not head.target and TARGET.fullmatch(route.target) is None:
            raise ValueError("the route's target must be a path in visible ASCII characters")
        block = head.block
        upgrade = block.upgrade is not None and asks_for_websocket(head)
        key = (
            route.upstream, peer, route.drop_cookies, route.drop_authorization, route.plain_messages, upgrade,
        )  # fmt: skip
        forwarded = block.forwarded
        if forwarded is None or forwarded[0] != key:
            forwarded = block.forwarded = key, self._build(head, route, peer, upgrade=upgrade)
        return b"%b %b HTTP/1.1\r\n%b" % (head.method, route.target, forwarded[1])

    def _build(self, head: RequestHead, route: Forward, peer: str, *, upgrade: bool) -> bytes:
        host = head.host or address_of(route.upstream)
        extra_names, extra_lines, cookie = encode_headers(route.upstream.headers)
        dropped = extra_names | (head.block.connection - CONNECTION_OPTIONS - NEVER_DROPPED)
        kept = kept_fields(head, route, dropped, upgrade=upgrade)
        # Host first, as RFC 9110 recommends.
        parts = [b"Host: ", host, *(add_cookie(kept, cookie) if cookie else kept)]
        if upgrade:
            parts.append(b"\r\nConnection: Upgrade\r\nUpgrade: websocket")
        parts.append(
            b"\r\nX-Forwarded-For: %b\r\nX-Forwarded-Proto: %b\r\nX-Forwarded-Host: %b"
            b"\r\nVia: 1.1 codehub\r\n%b\r\n" % (encode(peer), self._scheme, host, extra_lines)
        )
        return b"".join(parts)


def asks_for_websocket(head: RequestHead) -> bool:
    """Return whether the client wants a WebSocket; other upgrades, such as h2c, would bypass all checks."""
    return head.block.upgrade == b"websocket" and head.method == b"GET" and not head.has_body


@lru_cache(maxsize=1024)
def encode_headers(headers: tuple[tuple[str, str], ...]) -> tuple[frozenset[bytes], bytes, bytes]:
    """Return the headers' lowercase names, their lines, and the cookie separately."""
    encoded = [(encode(name), encode(value)) for name, value in headers]
    lines = [(name, value) for name, value in encoded if name.lower() != b"cookie"]
    cookie = b"; ".join([value for name, value in encoded if name.lower() == b"cookie"])
    names = frozenset(name.lower() for name, _ in lines)
    return names, b"".join([b"%b: %b\r\n" % line for line in lines]), cookie


def add_cookie(kept: list[bytes], cookie: bytes) -> list[bytes]:
    """Put the upstream's cookie first, and drop the client's cookies that start like it."""
    own = (cookie_name(cookie),)
    theirs = [
        remaining
        for start, value in zip(kept[::2], kept[1::2], strict=True)
        if start.lower() == COOKIE_LINE and (remaining := without_cookies(value, own))
    ]
    others = [
        part
        for start, value in zip(kept[::2], kept[1::2], strict=True)
        if start.lower() != COOKIE_LINE
        for part in (start, value)
    ]
    return [*others, b"\r\nCookie: ", b"; ".join([cookie, *theirs])]


def kept_fields(
    head: RequestHead, route: Forward, dropped: frozenset[bytes], *, upgrade: bool
) -> list[bytes]:
    """Return the starts and values of the lines to forward, alternately."""
    kept = []
    for name, value in head.block.fields:
        treatment, line_start = _treatments.get(name) or treatment_of(name)
        if dropped and name.lower() in dropped:
            continue
        passed = value if treatment is PASS else check_value(treatment, value, route, upgrade=upgrade)
        if passed is not None:
            kept.append(line_start)
            kept.append(passed)
    return kept


def treatment_of(name: bytes) -> tuple[bytes, bytes]:
    lower = name.lower()
    # Many servers read `_` as `-`, so such names could smuggle in fields that are removed or checked here.
    if lower in NEVER_PASSED or lower.startswith(FORWARDING_PREFIX) or b"_" in lower:
        treatment = DROP
    else:
        treatment = lower if lower in CHECKED else PASS
    if len(_treatments) < MAX_CACHED_NAMES:
        _treatments[name] = treatment, b"\r\n%b: " % name
    return treatment, b"\r\n%b: " % name


def check_value(treatment: bytes, value: bytes, route: Forward, *, upgrade: bool) -> bytes | None:
    """Return the part of the value that the upstream may see, or None to drop the field."""
    if treatment == b"cookie":
        return without_cookies(value, route.drop_cookies) or (None if value else value)
    if treatment == b"authorization":
        return None if route.drop_authorization else value
    if treatment == b"sec-websocket-extensions":
        return None if route.plain_messages and upgrade else value
    return None


def without_cookies(value: bytes, dropped: tuple[bytes, ...]) -> bytes:
    """Return a Cookie value without the cookies whose names start like these."""
    pairs = [pair.strip(b" \t") for pair in value.split(b";")]
    return b"; ".join([pair for pair in pairs if not cookie_name(pair).startswith(dropped)])


def address_of(upstream: Upstream) -> bytes:
    """Return a `Host` for a request of HTTP/1.0 that has none."""
    return b"localhost" if upstream.host.startswith("/") else encode(f"{upstream.host}:{upstream.port}")
