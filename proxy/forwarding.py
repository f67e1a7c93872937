"""The request head that goes to the upstream: what is between the client and us stays behind."""

from codehub.ports import Upstream
from proxy.heads import TARGET, RequestHead
from proxy.routing import Forward

MAX_MEMORISED_HEADS = 1024

HOP_BY_HOP = frozenset({
    b"connection", b"http2-settings", b"keep-alive", b"proxy", b"proxy-authenticate", b"proxy-authorization",
    b"proxy-connection", b"te", b"trailer", b"upgrade",
})  # fmt: skip
# What only we may say of where a request came from.
OURS = frozenset({b"forwarded", b"via", b"x-real-ip"})
OURS_PREFIX = b"x-forwarded-"
# Without these the upstream would read another request than we did, so naming them in Connection is in vain.
NEVER_DROPPED = frozenset({b"content-length", b"cookie", b"host", b"origin", b"transfer-encoding"})

_Key = tuple[object, ...]


class Forwarding:
    """Builds upstream heads; remembers the fields of those that repeat."""

    def __init__(self, scheme: str = "http") -> None:
        self._scheme = scheme.encode("ascii")
        self._fields: dict[_Key, bytes] = {}

    def request_head(self, head: RequestHead, route: Forward, peer: str) -> bytes:
        if TARGET.fullmatch(route.target) is None:
            raise ValueError("the route's target must be a path in visible ASCII characters")
        upgrade = asks_for_websocket(head)
        key = (
            head.block, route.drop_cookies, route.drop_authorization, route.upstream, route.plain_messages,
            upgrade, peer,
        )  # fmt: skip
        fields = self._fields.get(key)
        if fields is None:
            fields = self._build(head, route, peer)
            if len(self._fields) >= MAX_MEMORISED_HEADS:
                self._fields.clear()
            self._fields[key] = fields
        return b"%b %b HTTP/1.1\r\n%b" % (head.method, route.target, fields)

    def _build(self, head: RequestHead, route: Forward, peer: str) -> bytes:
        host = head.host or address_of(route.upstream)
        extra = [(encode(name), encode(value)) for name, value in route.upstream.headers]
        dropped = dropped_names(head, route) | {name.lower() for name, _ in extra}
        # Host first, as RFC 9110 advises.
        lines = [(b"Host", host)]
        lines += kept_fields(head, dropped, route.drop_cookies)
        if asks_for_websocket(head):
            lines += [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
        lines += [
            (b"X-Forwarded-For", encode(peer)),
            (b"X-Forwarded-Proto", self._scheme),
            (b"X-Forwarded-Host", host),
            (b"Via", b"1.1 codehub"),
            *extra,
        ]
        return b"".join([b"%b: %b\r\n" % line for line in lines]) + b"\r\n"


def asks_for_websocket(head: RequestHead) -> bool:
    """Whether a tunnel may follow. Others are ignored: h2c would carry requests past every check."""
    return head.block.upgrade == b"websocket" and head.method == b"GET" and not head.has_body


def dropped_names(head: RequestHead, route: Forward) -> set[bytes]:
    dropped = HOP_BY_HOP | OURS | (head.block.connection - NEVER_DROPPED)
    names = set(dropped)
    names.add(b"host")
    if route.drop_authorization:
        names.add(b"authorization")
    if route.plain_messages and asks_for_websocket(head):
        names.add(b"sec-websocket-extensions")
    return names


def kept_fields(
    head: RequestHead, dropped: set[bytes], drop_cookies: frozenset[bytes]
) -> list[tuple[bytes, bytes]]:
    kept = []
    for name, value in head.fields:
        lower = name.lower()
        # Many servers take `_` for `-`: what we remove or check must not come back in that disguise.
        if lower in dropped or lower.startswith(OURS_PREFIX) or b"_" in lower:
            continue
        passed = without_cookies(value, drop_cookies) if lower == b"cookie" else value
        if passed or not value:
            kept.append((name, passed))
    return kept


def without_cookies(value: bytes, dropped: frozenset[bytes]) -> bytes:
    """The Cookie field without these names; empty if nothing is left."""
    lower = {name.lower() for name in dropped}
    pairs = [pair.strip(b" \t") for pair in value.split(b";")]
    return b"; ".join([pair for pair in pairs if cookie_name(pair) not in lower])


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
