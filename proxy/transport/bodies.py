"""Bodies that pass through as bytes: where they end, and that nobody can be of another opinion about it."""

import re
from enum import Enum
from typing import Protocol

from proxy.transport.header_fields import CHUNKED, CLOSE, FIELD, Framing

MAX_CHUNK_LINE_BYTES = 256
MAX_TRAILER_BYTES = 4096

CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15}+)(?:;[\t\x20-\x7e]*+)?+\r\n")


class BodyRefused(Exception):
    """The body breaks its own framing; what came before may have been passed on, no more must be."""


class Body(Protocol):
    """Something that knows where it ends."""

    done: bool

    def cut(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what to pass on, and what came after the end. Raise BodyRefused."""


class LengthBody:
    """Ends after so many bytes."""

    __slots__ = ("_left", "done")

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def cut(self, data: bytes) -> tuple[bytes, bytes]:
        size = len(data)
        if size < self._left:
            self._left -= size
            return data, b""
        end, self._left, self.done = self._left, 0, True
        return (data, b"") if size == end else (data[:end], data[end:])


class CloseBody:
    """Ends with its connection."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = False

    def cut(self, data: bytes) -> tuple[bytes, bytes]:
        return data, b""


class Expected(Enum):
    """What comes next in a chunked body."""

    LINE = "line"
    DATA = "data"
    DATA_END = "data end"
    TRAILER = "trailer"


class ChunkedBody:
    """Ends with the empty chunk. Chunks pass as they came, or only their data if `decode`; trailers never do.

    A trailer could name any field, also those that we removed from the head.
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

    def cut(self, data: bytes) -> tuple[bytes, bytes]:
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
        # The last chunk's line is held back until the end is here, then rewritten without trailers.
        if not self.done:
            return (data if passed == len(data) else data[:passed]), b""
        return data[:passed] + b"0\r\n\r\n", data[position:]

    def _step(self, data: bytes, position: int) -> int | None:
        """Return the position after the next part; None if it is not here yet."""
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
    """None if there is nothing to come."""
    if framing is CHUNKED:
        return ChunkedBody(decode=decode)
    if framing is CLOSE:
        return CloseBody()
    return LengthBody(length) if length else None
