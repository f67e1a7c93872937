"""Message bodies as bytes: where each one ends, with framing that no other server can read differently."""

import re
from enum import Enum
from typing import Protocol

from proxy.transport.header_fields import FIELD

MAX_CHUNK_LINE_BYTES = 256
MAX_TRAILER_BYTES = 4096

CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15}+)(?:;[\t\x20-\x7e]*+)?+\r\n")


class Framing(Enum):
    """How the end of a body is found; only responses may end with their connection."""

    NONE = "none"
    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"


# Faster than `Framing.CHUNKED`, which is a call before Python 3.12; every request compares several times.
CHUNKED, CLOSE = Framing.CHUNKED, Framing.CLOSE


class BodyRefused(Exception):
    """The body breaks its framing. Earlier parts may have been forwarded; nothing more must be."""


class Body(Protocol):
    """A body that knows where it ends."""

    done: bool

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what to forward, and what follows the end of the body. Raise BodyRefused."""


class LengthBody:
    """A body that ends after a number of bytes."""

    __slots__ = ("_left", "done")

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        size = len(data)
        if size < self._left:
            self._left -= size
            return data, b""
        end, self._left, self.done = self._left, 0, True
        return (data, b"") if size == end else (data[:end], data[end:])


class CloseBody:
    """A body that ends with its connection."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = False

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        return data, b""


class Expected(Enum):
    """The next part of a chunked body."""

    LINE = "line"
    DATA = "data"
    DATA_END = "data end"
    TRAILER = "trailer"


class ChunkedBody:
    """A body that ends with the empty chunk.

    Chunks are forwarded as they came, or only their data if `decode`. Trailers are dropped: they could
    contain fields that the proxy removed from the head.
    """

    __slots__ = ("_decode", "_expected", "_held", "_left", "_parts", "_trailer_bytes", "done")

    def __init__(self, *, decode: bool = False) -> None:
        self._decode = decode
        self._expected = Expected.LINE
        self._left = 0
        self._held = b""
        self._trailer_bytes = 0
        self._parts: list[bytes] = []
        self.done = False

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        if self._held:
            data, self._held = self._held + data, b""
        position = passed = 0
        while not self.done:
            following = self._step(data, position)
            if following is None:
                self._held = data[position:]
                break
            position = following
            if self._expected is not Expected.TRAILER:
                passed = position
        if self._decode:
            parts, self._parts = self._parts, []
            return b"".join(parts), data[position:] if self.done else b""
        return self._as_it_came(data, position, passed)

    def _as_it_came(self, data: bytes, position: int, passed: int) -> tuple[bytes, bytes]:
        # The last chunk is held back until the body ends, then written without trailers.
        if not self.done:
            return (data if passed == len(data) else data[:passed]), b""
        return data[:passed] + b"0\r\n\r\n", data[position:]

    def _step(self, data: bytes, position: int) -> int | None:
        """Return the position after the next part, or None if the part is incomplete."""
        if self._expected is Expected.DATA:
            return self._take_data(data, position)
        if self._expected is Expected.LINE:
            return self._take_line(data, position)
        if self._expected is Expected.DATA_END:
            return self._take_data_end(data, position)
        return self._take_trailer(data, position)

    def _take_data(self, data: bytes, position: int) -> int | None:
        here = min(len(data) - position, self._left)
        if here == 0:
            return None
        if self._decode:
            self._parts.append(data[position : position + here])
        self._left -= here
        if self._left == 0:
            self._expected = Expected.DATA_END
        return position + here

    def _take_data_end(self, data: bytes, position: int) -> int | None:
        end = data[position : position + 2]
        if end == b"\r\n":
            self._expected = Expected.LINE
            return position + 2
        if end in {b"", b"\r"}:
            return None
        raise BodyRefused("chunk longer than its size")

    def _take_line(self, data: bytes, position: int) -> int | None:
        line = CHUNK_LINE.match(data, position, position + MAX_CHUNK_LINE_BYTES)
        if line is None:
            return self._wait(data, position, MAX_CHUNK_LINE_BYTES)
        self._left = int(line[1], 16)
        self._expected = Expected.DATA if self._left else Expected.TRAILER
        return line.end()

    def _take_trailer(self, data: bytes, position: int) -> int | None:
        if data.startswith(b"\r\n", position):
            self.done = True
            return position + 2
        room = MAX_TRAILER_BYTES - self._trailer_bytes
        line = FIELD.match(data, position, position + room)
        if line is None:
            return self._wait(data, position, room)
        self._trailer_bytes += line.end() - position
        return line.end()

    @staticmethod
    def _wait(data: bytes, position: int, room: int) -> None:
        if len(data) - position >= room or b"\n" in data[position:]:
            raise BodyRefused("malformed chunk line or trailer")


def new_body(framing: Framing, length: int, *, decode: bool = False) -> Body | None:
    """Return a body with this framing, or None if it is empty."""
    if framing is CHUNKED:
        return ChunkedBody(decode=decode)
    if framing is CLOSE:
        return CloseBody()
    return LengthBody(length) if length else None
