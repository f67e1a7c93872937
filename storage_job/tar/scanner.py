"""Check a tar stream on its way to tar, in constant memory, and refuse what must not be extracted.

The scanner and tar must agree on the position of each header; otherwise a member could hide in what the
scanner takes for data. So the scanner refuses everything that the programs that write archives never produce.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from storage_job.errors import CorruptedArchive, action_failed
from storage_job.tar.headers import (
    BLOCK,
    MAX_PAX_BYTES,
    Header,
    PaxRecords,
    padded,
    parse_decimal,
    parse_header,
    parse_pax,
    set_mode,
)
from storage_job.tar.members import FILE, OLD_SPARSE, MemberRules
from storage_job.tar.sparse import is_sparse, read_old_map, read_pax_map

_PAX, _LONG_NAME, _LONG_LINK = b"x", b"L", b"K"
_MAX_NAME_BYTES = 64 * 1024
_ZEROS = bytes(BLOCK)

# A positive number requests that many bytes; a negative number skips as many.
Steps = Generator[int, bytes, None]


@dataclass(slots=True)
class _Extensions:
    """The extended headers in front of a member."""

    records: PaxRecords | None = None
    long_name: bytes | None = None
    long_link: bytes | None = None

    def is_empty(self) -> bool:
        return self.records is None and self.long_name is None and self.long_link is None


@dataclass(frozen=True)
class Limits:
    """The most bytes that an archive may extract to, and the space that is available for them."""

    allowed: int | None = None
    available: int | None = None

    def check(self, size: int) -> None:
        if self.allowed is not None and size > self.allowed:
            raise CorruptedArchive(f"it extracts to more than the allowed {self.allowed} bytes")
        if self.available is not None and size > self.available:
            raise action_failed(
                f"The home needs more than the {self.available} bytes available on the volume. Nothing was "
                "changed. Give it more space, then try again."
            )


class TarScanner:
    """Checks a stream. It also changes the modes of members, by name, in chunks of whole blocks."""

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        modes: Mapping[bytes, int] = MappingProxyType({}),
    ) -> None:
        self.entries = 0
        self.bytes = 0
        self.members = MemberRules()
        self._limits = limits
        self._modes = modes
        self._block = memoryview(b"")
        self._steps = self._read()
        self._wanted = next(self._steps)
        self._collected = b""
        self._ended = False

    def feed(self, chunk: memoryview) -> None:
        """Check the next bytes; raise JobError before any byte of a bad member may be passed on."""
        self.bytes += len(chunk)
        self._limits.check(self.bytes)
        position = 0
        while position < len(chunk):
            if self._wanted < 0:
                position += self._skip(len(chunk) - position)
            else:
                position += self._collect(chunk, position)

    def finish(self) -> None:
        if not self._ended:
            raise CorruptedArchive("it ends too early")

    def _skip(self, available: int) -> int:
        count = min(-self._wanted, available)
        self._wanted += count
        if self._wanted == 0:
            self._wanted = next(self._steps)
        return count

    def _collect(self, chunk: memoryview, position: int) -> int:
        self._block = chunk[position : position + self._wanted - len(self._collected)]
        part = bytes(self._block)
        data = self._collected + part
        if len(data) == self._wanted:
            self._collected = b""
            self._wanted = self._steps.send(data)
        else:
            self._collected = data
        return len(part)

    def _read(self) -> Steps:
        while (block := (yield BLOCK)) != _ZEROS:
            yield from self._read_member(block)
        # tar stops at the first pair of empty blocks; nothing may follow them.
        while (yield BLOCK) == _ZEROS:
            self._ended = True
        raise CorruptedArchive("data follows its end")

    def _read_member(self, block: bytes) -> Steps:
        header = parse_header(block)
        extensions = _Extensions()
        while header.kind in (_PAX, _LONG_NAME, _LONG_LINK):
            yield from _read_extension(header, extensions)
            header = parse_header((yield BLOCK))
        if extensions.records is not None and not header.posix:
            raise CorruptedArchive("a pax header precedes a header of another format")
        records = extensions.records or {}
        size = parse_decimal(records[b"size"]) if b"size" in records else header.size
        name = records.get(b"GNU.sparse.name") or records.get(b"path") or extensions.long_name or header.name
        link_name = records.get(b"linkpath") or extensions.long_link or header.link_name
        self.members.admit(header.kind, name, link_name)
        if self._modes:
            self._set_mode(name)
        # Refuse a file that is too large before any of it is written.
        self._limits.check(size)
        self.entries += 1
        yield from _skip_data(header, records, size)

    def _set_mode(self, name: bytes) -> None:
        mode = self._modes.get(name.rstrip(b"/"))
        if mode is not None:
            # The last block that was read is this member's header.
            set_mode(self._block, mode)


def _read_extension(header: Header, extensions: _Extensions) -> Steps:
    """Read a header that extends the next one; refuse mixed or repeated ones, on which readers disagree."""
    limit = MAX_PAX_BYTES if header.kind == _PAX else _MAX_NAME_BYTES
    if not 0 < header.size <= limit:
        raise CorruptedArchive("an extended header is empty or too large")
    payload = (yield padded(header.size))[: header.size]
    if header.kind == _PAX and extensions.is_empty():
        extensions.records = parse_pax(payload)
    elif header.kind == _LONG_NAME and extensions.records is None and extensions.long_name is None:
        extensions.long_name = _parse_long_name(payload)
    elif header.kind == _LONG_LINK and extensions.records is None and extensions.long_link is None:
        extensions.long_link = _parse_long_name(payload)
    else:
        raise CorruptedArchive("extended headers are mixed or repeated")


def _parse_long_name(payload: bytes) -> bytes:
    name = payload.rstrip(b"\0")
    if not name or b"\0" in name:
        raise CorruptedArchive("a long name is malformed")
    return name


def _skip_data(header: Header, records: PaxRecords, size: int) -> Steps:
    sparse = is_sparse(records)
    if sparse and header.kind != FILE:
        raise CorruptedArchive("something other than a file claims to be sparse")
    if header.kind not in (FILE, OLD_SPARSE) and size:
        raise CorruptedArchive("something other than a file has content")
    remaining = padded(size)
    if sparse:
        remaining -= yield from read_pax_map(records, size)
    elif header.kind == OLD_SPARSE:
        if b"size" in records:
            raise CorruptedArchive("a sparse file gives its size twice")
        yield from read_old_map(header)
    if remaining:
        yield -remaining
