"""Syntax and tables that request heads and response heads share."""

import re
from collections.abc import Hashable
from functools import lru_cache
from typing import Generic, TypeVar

# Groups: the whole line, its name, its value with the white space after it.
FIELD = re.compile(rb"(([!#$%&'*+\-.^_`|~0-9A-Za-z]++):[ \t]*+([\t\x20-\x7e\x80-\xff]*+)\r\n)")
LENGTH = re.compile(rb"[0-9]{1,18}+")

HOP_BY_HOP = frozenset({
    b"connection", b"http2-settings", b"keep-alive", b"proxy", b"proxy-authenticate", b"proxy-authorization",
    b"proxy-connection", b"te", b"trailer", b"upgrade",
})  # fmt: skip
# `Connection` cannot remove these: the receiver would read a different message than the proxy did.
NEVER_DROPPED = frozenset({b"content-length", b"cookie", b"host", b"origin", b"transfer-encoding"})
# Options of `Connection` that are not names of fields.
CONNECTION_OPTIONS = frozenset({b"close", b"keep-alive", b"upgrade"})

# Statuses whose responses have no body.
BODILESS = frozenset({204, 304})

MAX_CACHED_NAMES = 1024
MAX_CACHED_HEADS = 1024
MAX_SEEN_HASHES = 8192

Value = TypeVar("Value")


class ParseCache(Generic[Value]):
    """Caches what is parsed more than once; one-off heads would displace those that repeat."""

    __slots__ = ("_seen", "_values", "get")

    def __init__(self) -> None:
        self._values: dict[Hashable, Value] = {}
        self._seen: set[int] = set()
        # Bound to the dict's own method, because every head calls it.
        self.get = self._values.get

    def offer(self, key: Hashable, value: Value) -> None:
        """Store the value if its key was offered before."""
        mark = hash(key)
        if mark in self._seen:
            if len(self._values) >= MAX_CACHED_HEADS:
                self._values.clear()
            self._values[key] = value
        else:
            if len(self._seen) >= MAX_SEEN_HASHES:
                self._seen.clear()
            self._seen.add(mark)


@lru_cache(maxsize=256)
def parse_list(value: bytes) -> frozenset[bytes]:
    """Return the lowercase items of a comma-separated value."""
    return frozenset(item for each in value.lower().split(b",") if (item := each.strip(b" \t")))


def cookie_name(pair: bytes) -> bytes:
    """Return the lowercase name of a `name=value` pair."""
    return pair.partition(b"=")[0].strip(b" \t").lower()


def encode(text: str) -> bytes:
    """Encode a name or value for a head. Raise ValueError if it could break the head."""
    if not text.isprintable():
        raise ValueError("a name or value for a head must be printable")
    return text.encode("latin-1")


def connection_line(*, http11: bool, keep_alive: bool) -> bytes:
    """Return the end of a head; `Connection` is omitted where it would repeat the version's default."""
    if http11 == keep_alive:
        return b"\r\n"
    return b"Connection: keep-alive\r\n\r\n" if keep_alive else b"Connection: close\r\n\r\n"
