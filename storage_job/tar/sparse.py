"""The maps of sparse members, checked so that tar consumes exactly the bytes that the scanner skips."""

from collections.abc import Generator, Iterator

from storage_job.errors import CorruptedArchive
from storage_job.pax import SPARSE_WORDS, Records, decimal
from storage_job.tar.headers import BLOCK, Header, number

_SUPPORTED = {b"GNU.sparse.major": b"1", b"GNU.sparse.minor": b"0"}
_NEEDED = {b"GNU.sparse.name", b"GNU.sparse.realsize"}
_LONGEST_LINE = 20
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
    """The decimal lines of a map, read block by block since a map may be far larger than memory allows."""

    def __init__(self, limit: int) -> None:
        self.taken = 0
        self._limit = limit
        self._rest = b""

    def next(self) -> Blocks:
        while b"\n" not in self._rest:
            if self.taken >= self._limit or len(self._rest) > _LONGEST_LINE:
                raise CorruptedArchive("a sparse file's map is unreadable")
            self._rest += yield BLOCK
            self.taken += BLOCK
        line, _, self._rest = self._rest.partition(b"\n")
        return decimal(line)

    def end(self) -> None:
        if self._rest.strip(b"\0"):
            raise CorruptedArchive("a sparse file's map is followed by something else")


def is_sparse(records: Records) -> bool:
    return not SPARSE_WORDS.isdisjoint(records)


def read_pax_map(records: Records, size: int) -> Blocks:
    """Read the map in front of the data (pax sparse format 1.0) and return how many bytes it took."""
    if not _SUPPORTED.items() <= records.items() or not records.keys() >= _NEEDED:
        raise CorruptedArchive("a sparse file is of an unsupported version")
    decimal(records[b"GNU.sparse.realsize"])
    numbers, regions = _Numbers(size), _Regions()
    for _ in range((yield from numbers.next())):
        yield from numbers.next()  # where the region belongs
        regions.add((yield from numbers.next()))
    numbers.end()
    if numbers.taken + regions.stored != size:
        raise CorruptedArchive("a sparse file's map does not match its size")
    return numbers.taken


def read_old_map(header: Header) -> Blocks:
    """Check GNU's older map (in the header and blocks after it); return the bytes of those blocks."""
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
        yield number(size)
