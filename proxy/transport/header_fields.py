"""Fields of a head and what they say together: how a body ends, whether a connection stays."""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

# The whole line, its name, its value with the white space after it.
FIELD = re.compile(rb"(([!#$%&'*+\-.^_`|~0-9A-Za-z]++):[ \t]*+([\t\x20-\x7e\x80-\xff]*+)\r\n)")
PAIR = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]++):[ \t]*+([\t\x20-\x7e\x80-\xff]*+)\r\n")
BLOCK = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[\t\x20-\x7e\x80-\xff]*+\r\n)*+\r\n")
LENGTH = re.compile(rb"[0-9]{1,18}+")
HOST = re.compile(rb"(?:[A-Za-z0-9._-]++|\[[0-9A-Fa-f:.]++\])(?::[0-9]{1,5}+)?+")
BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")

# A second one of these could be read by us and ignored by the upstream, or the other way round.
SINGLE = frozenset({
    b"authorization", b"content-length", b"expect", b"host", b"origin", b"sec-fetch-dest", b"sec-fetch-mode",
    b"sec-fetch-site", b"sec-websocket-key", b"sec-websocket-version", b"transfer-encoding",
})  # fmt: skip
JOINED = {b"connection": b",", b"cookie": b"; ", b"upgrade": b","}

MAX_MEMORISED_NAMES = 1024
# Clients send the same few names for ever.
_lower_names: dict[bytes, bytes] = {}

FIELD_FAULTS = (
    (BARE_LINE_FEED, 400, "bare line feed"),
    (re.compile(rb"\r\n[ \t]|\A[ \t]"), 400, "folded field"),
    (re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"), 400, "control character"),
    (re.compile(rb"(?m)^[^:\r\n]*[ \t][^:\r\n]*:"), 400, "space in field name"),
)


class HeadRefused(Exception):
    """This head is not passed on; the client is told the status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
        self.reason = reason


class Framing(Enum):
    """How the end of a body is known; only answers may end with their connection."""

    NONE = "none"
    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"


# Found at once, where `Framing.NONE` costs a call until Python 3.12; every request asks several times.
NONE, LENGTH_TOLD, CHUNKED, CLOSE = Framing


@dataclass(slots=True, eq=False)
class FieldBlock:
    """What the version and the fields of a head say; equal heads of one browser share it.

    `forwarded` is what an upstream was told of it last, after what that depended on; `ask` is what kind of
    request it makes of a GET.
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
    ask: str | None = None


def fault_of(
    raw: bytes, faults: tuple[tuple[re.Pattern[bytes], int, str], ...], otherwise: str
) -> HeadRefused:
    for pattern, status, reason in faults:
        if pattern.search(raw) is not None:
            return HeadRefused(status, reason)
    return HeadRefused(400, otherwise)


def read_block(version: bytes, lines: bytes, max_fields: int) -> FieldBlock:
    if BLOCK.fullmatch(lines) is None:
        raise fault_of(lines, FIELD_FAULTS, "field")
    # There is nothing between the pairs, or the block would not have matched.
    found = PAIR.findall(lines)
    if len(found) > max_fields:
        raise HeadRefused(431, "too many fields")
    if b" \r\n" in lines or b"\t\r\n" in lines:
        found = [(name, value.rstrip(b" \t")) for name, value in found]
    known = read_known(found)
    check_host(version, known)
    framing, length = read_framing(version, known)
    connection = read_list(known.get(b"connection", b""))
    modern = version == b"HTTP/1.1"
    upgrade = known.get(b"upgrade") if modern and b"upgrade" in connection else None
    return FieldBlock(
        version=version,
        fields=found,
        framing=framing,
        length=length,
        keep_alive=b"close" not in connection if modern else b"keep-alive" in connection,
        upgrade=upgrade.lower() if upgrade else None,
        expects_continue=read_expectation(known) and modern,
        connection=connection,
        known=known,
    )


def read_known(fields: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
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
    if len(_lower_names) < MAX_MEMORISED_NAMES:
        _lower_names[name] = lower
    return lower


@lru_cache(maxsize=256)
def read_list(value: bytes) -> frozenset[bytes]:
    return frozenset(item for each in value.lower().split(b",") if (item := each.strip(b" \t")))


def check_host(version: bytes, known: dict[bytes, bytes]) -> None:
    host = known.get(b"host")
    if host is None and version == b"HTTP/1.1":
        raise HeadRefused(400, "missing host")
    if host is not None and HOST.fullmatch(host) is None:
        raise HeadRefused(400, "malformed host")


def read_framing(version: bytes, known: dict[bytes, bytes]) -> tuple[Framing, int]:
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


def read_expectation(known: dict[bytes, bytes]) -> bool:
    expectation = known.get(b"expect")
    if expectation is not None and expectation.lower() != b"100-continue":
        raise HeadRefused(417, "expectation")
    return expectation is not None
