"""The request head that goes to the upstream: what is between the client and us stays behind."""

from functools import lru_cache

from codehub.ports import Upstream
from proxy.transport.header_fields import MAX_MEMORISED_NAMES
from proxy.transport.request_head import TARGET, RequestHead
from proxy.transport.routing import Forward

HOP_BY_HOP = frozenset({
    b"connection", b"http2-settings", b"keep-alive", b"proxy", b"proxy-authenticate", b"proxy-authorization",
    b"proxy-connection", b"te", b"trailer", b"upgrade",
})  # fmt: skip
# What only we may say of where a request came from.
OURS = frozenset({b"forwarded", b"via", b"x-real-ip"})
OURS_PREFIX = b"x-forwarded-"
# Without these the upstream would read another request than we did, so naming them in Connection is in vain.
NEVER_DROPPED = frozenset({b"content-length", b"cookie", b"host", b"origin", b"transfer-encoding"})

# The host goes first, and on its own.
NEVER_PASSED = HOP_BY_HOP | OURS | {b"host"}
# What Connection says apart from names of fields.
NOT_NAMES = frozenset({b"close", b"keep-alive", b"upgrade"})

# What a field is to us: one of these, or the name in lower case of one that needs a closer look.
PASS, DROP = b"pass", b"drop"
LOOKED_AT = frozenset({b"authorization", b"cookie", b"sec-websocket-extensions"})
# By name as sent: what it is, and how its line begins, the end of the one before included.
_roles: dict[bytes, tuple[bytes, bytes]] = {}


class ForwardedHeads:
    """Builds upstream heads; each block of fields remembers what became of it last."""

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
        extra_names, extra_lines = encode_headers(route.upstream.headers)
        dropped = extra_names | (head.block.connection - NOT_NAMES - NEVER_DROPPED)
        # Host first, as RFC 9110 advises.
        parts = [b"Host: ", host, *kept_fields(head, route, dropped, upgrade=upgrade)]
        if upgrade:
            parts.append(b"\r\nConnection: Upgrade\r\nUpgrade: websocket")
        parts.append(
            b"\r\nX-Forwarded-For: %b\r\nX-Forwarded-Proto: %b\r\nX-Forwarded-Host: %b"
            b"\r\nVia: 1.1 codehub\r\n%b\r\n" % (encode(peer), self._scheme, host, extra_lines)
        )
        return b"".join(parts)


def asks_for_websocket(head: RequestHead) -> bool:
    """Whether a tunnel may follow. Others are ignored: h2c would carry requests past every check."""
    return head.block.upgrade == b"websocket" and head.method == b"GET" and not head.has_body


@lru_cache(maxsize=1024)
def encode_headers(headers: tuple[tuple[str, str], ...]) -> tuple[frozenset[bytes], bytes]:
    """Fields of ours: their names in lower case, and their lines."""
    lines = [(encode(name), encode(value)) for name, value in headers]
    return frozenset(name.lower() for name, _ in lines), b"".join([b"%b: %b\r\n" % line for line in lines])


def kept_fields(
    head: RequestHead, route: Forward, dropped: frozenset[bytes], *, upgrade: bool
) -> list[bytes]:
    """Alternately how a line begins and its value."""
    kept = []
    for name, value in head.block.fields:
        role, beginning = _roles.get(name) or role_of(name)
        if dropped and name.lower() in dropped:
            continue
        passed = value if role is PASS else look_at(role, value, route, upgrade=upgrade)
        if passed is not None:
            kept.append(beginning)
            kept.append(passed)
    return kept


def role_of(name: bytes) -> tuple[bytes, bytes]:
    lower = name.lower()
    # Many servers take `_` for `-`: what we remove or check must not come back in that disguise.
    if lower in NEVER_PASSED or lower.startswith(OURS_PREFIX) or b"_" in lower:
        role = DROP
    else:
        role = lower if lower in LOOKED_AT else PASS
    if len(_roles) < MAX_MEMORISED_NAMES:
        _roles[name] = role, b"\r\n%b: " % name
    return role, b"\r\n%b: " % name


def look_at(role: bytes, value: bytes, route: Forward, *, upgrade: bool) -> bytes | None:
    """What passes of a field that does not simply pass; None if nothing does."""
    if role == b"cookie":
        return without_cookies(value, route.drop_cookies) or (None if value else value)
    if role == b"authorization":
        return None if route.drop_authorization else value
    if role == b"sec-websocket-extensions":
        return None if route.plain_messages and upgrade else value
    return None


def without_cookies(value: bytes, dropped: frozenset[bytes]) -> bytes:
    """The Cookie field without these names; empty if nothing is left."""
    lower = lower_names(dropped)
    pairs = [pair.strip(b" \t") for pair in value.split(b";")]
    return b"; ".join([pair for pair in pairs if cookie_name(pair) not in lower])


@lru_cache(maxsize=64)
def lower_names(names: frozenset[bytes]) -> frozenset[bytes]:
    return frozenset(name.lower() for name in names)


def cookie_name(pair: bytes) -> bytes:
    return pair.partition(b"=")[0].strip(b" \t").lower()


def address_of(upstream: Upstream) -> bytes:
    """What to call an upstream that the client, of HTTP/1.0, has not named."""
    return b"localhost" if upstream.host.startswith("/") else encode(f"{upstream.host}:{upstream.port}")


def encode(text: str) -> bytes:
    """Encode a part of a head that is ours; refuse to break the head with it."""
    if not text.isprintable():
        raise ValueError("a name or value for a head must be printable")
    return text.encode("latin-1")
