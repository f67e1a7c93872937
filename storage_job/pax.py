"""The records of a pax extended header, which override fields of the tar header that follows."""

import re

from storage_job.errors import CorruptedArchive

# Extended attributes live here; anything larger is an attack on memory, not a file.
LIMIT_BYTES = 4 * 1024 * 1024
_LENGTH = re.compile(rb"[1-9][0-9]{0,7}(?= )")
_DECIMAL = re.compile(rb"[0-9]{1,18}")
_NAMES = (b"path", b"linkpath", b"GNU.sparse.name")
# tar acts on these and the scanner understands them; other GNU words could make the two disagree.
SPARSE_WORDS = {b"GNU.sparse.major", b"GNU.sparse.minor", b"GNU.sparse.name", b"GNU.sparse.realsize"}

Records = dict[bytes, bytes]


def parse_pax(payload: bytes) -> Records:
    records: Records = {}
    position = 0
    while position < len(payload):
        found = _LENGTH.match(payload, position)
        end = position + int(found[0]) if found else 0
        if not found or not found.end() < end <= len(payload) or payload[end - 1] != ord("\n"):
            raise CorruptedArchive("a pax header is malformed")
        word, equals, value = payload[found.end() + 1 : end - 1].partition(b"=")
        if not word or not equals:
            raise CorruptedArchive("a pax header is malformed")
        _check(word, value)
        records[word] = value
        position = end
    return records


def decimal(value: bytes) -> int:
    if not _DECIMAL.fullmatch(value):
        raise CorruptedArchive("a pax header holds an unreadable number")
    return int(value)


def _check(word: bytes, value: bytes) -> None:
    if word.startswith(b"GNU.") and word not in SPARSE_WORDS:
        raise CorruptedArchive(f"a pax header uses the unsupported word {word.decode(errors='replace')}")
    # tar would cut such a name at the zero byte and so write to another place than the one checked here.
    if word in _NAMES and (not value or b"\0" in value):
        raise CorruptedArchive("a pax header holds an impossible name")
