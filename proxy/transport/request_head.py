"""Request heads, parsed strictly: anything that two servers could read differently is refused."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from proxy.transport.bodies import CHUNKED, Framing
from proxy.transport.header_fields import LENGTH, MAX_CACHED_NAMES, ParseCache, parse_list

MAX_CACHED_BYTES = 4096

LINE = re.compile(rb"([A-Z][A-Z0-9_-]{0,31}+) (/[!\"$-~]*+) HTTP/1\.[01]\r\n")
TARGET = re.compile(rb"/[!\"$-~]*+")
PAIR = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]++):[ \t]*+([\t\x20-\x7e\x80-\xff]*+)\r\n")
BLOCK = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[\t\x20-\x7e\x80-\xff]*+\r\n)*+\r\n")
HOST = re.compile(rb"(?:[A-Za-z0-9._-]++|\[[0-9A-Fa-f:.]++\])(?::[0-9]{1,5}+)?+")
BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")

# A response to CONNECT has no body whatever it says, and TRACE would reveal the fields that the proxy adds.
REFUSED_METHODS = frozenset({b"CONNECT", b"TRACE"})

# The proxy might read one of two such fields, and the upstream the other.
SINGLE = frozenset({
    b"authorization", b"content-length", b"expect", b"host", b"origin", b"sec-fetch-dest", b"sec-fetch-mode",
    b"sec-fetch-site", b"sec-websocket-key", b"sec-websocket-version", b"transfer-encoding",
})  # fmt: skip
JOINED = {b"connection": b",", b"cookie": b"; ", b"upgrade": b",", b"x-forwarded-for": b","}

Faults = tuple[tuple[re.Pattern[bytes], int, str], ...]

LINE_FAULTS: Faults = (
    (BARE_LINE_FEED, 400, "bare line feed"),
    (re.compile(rb"\A[^ \r\n]++ \*"), 400, "asterisk-form target"),
    (re.compile(rb"\A[^ \r\n]++ [A-Za-z][A-Za-z0-9+.-]*+:"), 400, "absolute-form target"),
    (re.compile(rb"\A[^ \r\n]++ /[^ \r\n]*+ HTTP/(?!1\.[01]\r\n)[0-9.]++\r\n"), 505, "unknown version"),
)
FIELD_FAULTS: Faults = (
    (BARE_LINE_FEED, 400, "bare line feed"),
    (re.compile(rb"\r\n[ \t]|\A[ \t]"), 400, "folded field"),
    (re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"), 400, "control character"),
    (re.compile(rb"(?m)^[^:\r\n]*[ \t][^:\r\n]*:"), 400, "space in field name"),
)

# Clients keep sending the same few names.
_lower_names: dict[bytes, bytes] = {}


class HeadRefused(Exception):
    """This head is not forwarded; the client gets the status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
        self.reason = reason


@dataclass(slots=True, eq=False)
class FieldBlock:
    """The version and fields of a head, parsed; identical blocks share one object.

    Two results are cached on it: `forwarded`, the last block sent to an upstream after the values that it
    depends on, and `kind`, the router's classification of a GET request.
    """

    version: bytes
    fields: list[tuple[bytes, bytes]]
    framing: Framing
    length: int
    keep_alive: bool
    upgrade: bytes | None
    expects_continue: bool
    connection: frozenset[bytes]
    known: dict[bytes, bytes]
    forwarded: tuple[tuple[object, ...], bytes] | None = None
    kind: str | None = None


class RequestHead(NamedTuple):
    """One request without its body. Values have no surrounding white space."""

    method: bytes
    target: bytes
    block: FieldBlock

    @property
    def version(self) -> bytes:
        return self.block.version

    @property
    def framing(self) -> Framing:
        return self.block.framing

    @property
    def length(self) -> int:
        return self.block.length

    @property
    def has_body(self) -> bool:
        return self.block.framing is CHUNKED or self.block.length > 0

    @property
    def keep_alive(self) -> bool:
        return self.block.keep_alive

    @property
    def upgrade(self) -> bytes | None:
        """The lowercase `Upgrade`, if `Connection` lists it."""
        return self.block.upgrade

    @property
    def expects_continue(self) -> bool:
        return self.block.expects_continue

    @property
    def cookies(self) -> bytes | None:
        return self.block.known.get(b"cookie")

    @property
    def authorization(self) -> bytes | None:
        return self.block.known.get(b"authorization")

    @property
    def host(self) -> bytes | None:
        return self.block.known.get(b"host")

    @property
    def origin(self) -> bytes | None:
        return self.block.known.get(b"origin")

    def get(self, name: bytes) -> bytes | None:
        """Return the first value of a field, by lowercase name; lists such as `Cookie` are joined."""
        return self.block.known.get(name)


class RequestHeadReader:
    """Parses heads; caches field blocks, because a browser repeats the same one."""

    def __init__(self, max_bytes: int = 32 * 1024, max_fields: int = 100) -> None:
        self.max_bytes = max_bytes
        self._max_fields = max_fields
        self._blocks: ParseCache[FieldBlock] = ParseCache()

    def read(self, raw: bytes) -> RequestHead:
        """Parse a complete head, including its empty line. Raise HeadRefused."""
        if len(raw) > self.max_bytes:
            raise HeadRefused(431, "head too large")
        line = LINE.match(raw)
        if line is None:
            raise find_fault(raw, LINE_FAULTS, "request line")
        method, target = line.groups()
        if method in REFUSED_METHODS:
            raise HeadRefused(405, "method")
        # The version is part of the key: it decides what the fields mean.
        key = raw[line.end() - 10 :]
        block = self._blocks.get(key)
        if block is None:
            block = parse_block(key[:8], key[10:], self._max_fields)
            if len(key) <= MAX_CACHED_BYTES:
                self._blocks.offer(key, block)
        return RequestHead(method, target, block)

    def check_partial(self, raw: bytes) -> None:
        """Raise HeadRefused as soon as an incomplete head cannot become valid."""
        if len(raw) >= self.max_bytes:
            raise HeadRefused(431, "head too large")
        if BARE_LINE_FEED.search(raw) is not None:
            raise HeadRefused(400, "bare line feed")
        if raw.startswith(b"\r\n"):
            raise HeadRefused(400, "request line")


def find_fault(raw: bytes, faults: Faults, otherwise: str) -> HeadRefused:
    for pattern, status, reason in faults:
        if pattern.search(raw) is not None:
            return HeadRefused(status, reason)
    return HeadRefused(400, otherwise)


def parse_block(version: bytes, lines: bytes, max_fields: int) -> FieldBlock:
    if BLOCK.fullmatch(lines) is None:
        raise find_fault(lines, FIELD_FAULTS, "field")
    # The block matched, so nothing lies between the pairs.
    fields = PAIR.findall(lines)
    if len(fields) > max_fields:
        raise HeadRefused(431, "too many fields")
    if b" \r\n" in lines or b"\t\r\n" in lines:
        fields = [(name, value.rstrip(b" \t")) for name, value in fields]
    known = index_fields(fields)
    check_host(version, known)
    framing, length = parse_framing(version, known)
    connection = parse_list(known.get(b"connection", b""))
    http11 = version == b"HTTP/1.1"
    upgrade = known.get(b"upgrade") if http11 and b"upgrade" in connection else None
    return FieldBlock(
        version=version,
        fields=fields,
        framing=framing,
        length=length,
        keep_alive=b"close" not in connection if http11 else b"keep-alive" in connection,
        upgrade=upgrade.lower() if upgrade else None,
        expects_continue=parse_expectation(known) and http11,
        connection=connection,
        known=known,
    )


def index_fields(fields: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the fields by lowercase name; refuse duplicates that servers could read differently."""
    known: dict[bytes, bytes] = {}
    for name, value in fields:
        lower = _lower_names.get(name) or lower_name(name)
        if lower not in known:
            known[lower] = value
        elif lower in SINGLE:
            raise HeadRefused(400, f"duplicate {lower.decode()}")
        elif lower in JOINED:
            known[lower] += JOINED[lower] + value
    return known


def lower_name(name: bytes) -> bytes:
    lower = name.lower()
    if len(_lower_names) < MAX_CACHED_NAMES:
        _lower_names[name] = lower
    return lower


def check_host(version: bytes, known: dict[bytes, bytes]) -> None:
    host = known.get(b"host")
    if host is None and version == b"HTTP/1.1":
        raise HeadRefused(400, "missing host")
    if host is not None and HOST.fullmatch(host) is None:
        raise HeadRefused(400, "malformed host")


def parse_framing(version: bytes, known: dict[bytes, bytes]) -> tuple[Framing, int]:
    coding, length = known.get(b"transfer-encoding"), known.get(b"content-length")
    if coding is not None:
        if length is not None:
            raise HeadRefused(400, "two framings")
        if version != b"HTTP/1.1":
            raise HeadRefused(400, "transfer-encoding with HTTP/1.0")
        if coding != b"chunked":
            raise HeadRefused(501, "transfer-encoding")
        return Framing.CHUNKED, 0
    if length is None:
        return Framing.NONE, 0
    if LENGTH.fullmatch(length) is None:
        raise HeadRefused(400, "content-length")
    return Framing.LENGTH, int(length)


def parse_expectation(known: dict[bytes, bytes]) -> bool:
    expectation = known.get(b"expect")
    if expectation is not None and expectation.lower() != b"100-continue":
        raise HeadRefused(417, "expectation")
    return expectation is not None
