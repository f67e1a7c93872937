"""Request heads, read strictly: what two servers could understand differently is refused."""

import re
from typing import NamedTuple

from proxy.transport.header_fields import (
    BARE_LINE_FEED,
    CHUNKED,
    FieldBlock,
    Framing,
    HeadRefused,
    fault_of,
    read_block,
)
from proxy.transport.parse_cache import ParseCache

MAX_MEMORISED_BYTES = 4096

LINE = re.compile(rb"([A-Z][A-Z0-9_-]{0,31}+) (/[!\"$-~]*+) HTTP/1\.[01]\r\n")
TARGET = re.compile(rb"/[!\"$-~]*+")

# The answer to CONNECT has no body whatever it says, and TRACE would show what we add.
REFUSED_METHODS = frozenset({b"CONNECT", b"TRACE"})

LINE_FAULTS = (
    (BARE_LINE_FEED, 400, "bare line feed"),
    (re.compile(rb"\A[^ \r\n]++ \*"), 400, "asterisk-form target"),
    (re.compile(rb"\A[^ \r\n]++ [A-Za-z][A-Za-z0-9+.-]*+:"), 400, "absolute-form target"),
    (re.compile(rb"\A[^ \r\n]++ /[^ \r\n]*+ HTTP/(?!1\.[01]\r\n)[0-9.]++\r\n"), 505, "unknown version"),
)


class RequestHead(NamedTuple):
    """One request without its body. Values of fields are without the space around them."""

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
        """In lower case, if `Connection` asks for it too."""
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
        """The first value of the field with this name in lower case; of lists (cookie), all of it."""
        return self.block.known.get(name)


class RequestHeadReader:
    """Reads heads; remembers field blocks, because a browser sends the same one again and again."""

    def __init__(self, max_bytes: int = 32 * 1024, max_fields: int = 100) -> None:
        self.max_bytes = max_bytes
        self._max_fields = max_fields
        self._blocks: ParseCache[FieldBlock] = ParseCache()

    def read(self, raw: bytes) -> RequestHead:
        """Read one whole head, up to and with its empty line."""
        if len(raw) > self.max_bytes:
            raise HeadRefused(431, "head too large")
        line = LINE.match(raw)
        if line is None:
            raise fault_of(raw, LINE_FAULTS, "request line")
        method, target = line.groups()
        if method in REFUSED_METHODS:
            raise HeadRefused(405, "method")
        # The version belongs to the key: it decides what the fields mean.
        remembered = raw[line.end() - 10 :]
        block = self._blocks.get(remembered)
        if block is None:
            block = read_block(remembered[:8], remembered[10:], self._max_fields)
            if len(remembered) <= MAX_MEMORISED_BYTES:
                self._blocks.offer(remembered, block)
        return RequestHead(method, target, block)

    def check_partial(self, raw: bytes) -> None:
        """Refuse a head that has not ended yet as soon as it cannot become a good one."""
        if len(raw) >= self.max_bytes:
            raise HeadRefused(431, "head too large")
        if BARE_LINE_FEED.search(raw) is not None:
            raise HeadRefused(400, "bare line feed")
        if raw.startswith(b"\r\n"):
            raise HeadRefused(400, "request line")
