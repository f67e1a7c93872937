"""Check the maps of sparse members, so that tar consumes exactly the bytes that the scanner skips."""

from collections.abc import Generator, Iterator

from storage_job.errors import CorruptedArchive
from storage_job.tar.headers import BLOCK, SPARSE_KEYWORDS, Header, PaxRecords, parse_decimal, parse_number

_SUPPORTED = {b"GNU.sparse.major": b"1", b"GNU.sparse.minor": b"0"}
_REQUIRED = {b"GNU.sparse.name", b"GNU.sparse.realsize"}
_MAX_LINE_BYTES = 20
_ENTRY_BYTES = 24

Blocks = Generator[int, bytes, int]


class _Regions:
    """Adds up the stored regions. Each starts on a block, so only the last may end within one."""

    def __init__(self) -> None:
        self.stored = 0

    def add(self, size: int) -> None:
        if size and self.stored % BLOCK:
            raise CorruptedArchive("a sparse file's map is inconsistent")
        self.stored += size


class _Numbers:
    """Reads the decimal lines of a map block by block, because a map may be larger than the memory."""

    def __init__(self, limit: int) -> None:
        self.taken = 0
        self._limit = limit
        self._rest = b""

    def next(self) -> Blocks:
        while b"\n" not in self._rest:
            if self.taken >= self._limit or len(self._rest) > _MAX_LINE_BYTES:
                raise CorruptedArchive("a sparse file's map is unreadable")
            self._rest += yield BLOCK
            self.taken += BLOCK
        line, _, self._rest = self._rest.partition(b"\n")
        return parse_decimal(line)

    def end(self) -> None:
        if self._rest.strip(b"\0"):
            raise CorruptedArchive("a sparse file's map is followed by something else")


def is_sparse(records: PaxRecords) -> bool:
    return not SPARSE_KEYWORDS.isdisjoint(records)


def read_pax_map(records: PaxRecords, size: int) -> Blocks:
    """Read the map that precedes the data (pax sparse format 1.0); return its size in bytes."""
    if not _SUPPORTED.items() <= records.items() or not records.keys() >= _REQUIRED:
        raise CorruptedArchive("a sparse file has an unsupported version")
    parse_decimal(records[b"GNU.sparse.realsize"])
    numbers, regions = _Numbers(size), _Regions()
    for _ in range((yield from numbers.next())):
        yield from numbers.next()  # the offset of the region
        regions.add((yield from numbers.next()))
    numbers.end()
    if numbers.taken + regions.stored != size:
        raise CorruptedArchive("a sparse file's map does not match its size")
    return numbers.taken


def read_old_map(header: Header) -> Blocks:
    """Check a map in the old GNU format (in the header and the blocks after it); return the blocks' size."""
    regions, taken = _Regions(), 0
    block, entries, more = header.block, header.block[386:482], header.block[482]
    while True:
        for size in _old_entries(entries):
            regions.add(size)
        if not more:
            break
        block = yield BLOCK
        taken += BLOCK
        entries, more = block[:504], block[504]
    if regions.stored != header.size:
        raise CorruptedArchive("a sparse file's map does not match its size")
    return taken


def _old_entries(entries: bytes) -> Iterator[int]:
    for start in range(0, len(entries), _ENTRY_BYTES):
        size = entries[start + 12 : start + 24]
        # tar ends the map at the first unused entry.
        if not size[0]:
            return
        yield parse_number(size)
