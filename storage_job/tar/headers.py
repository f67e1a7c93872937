"""Parse tar headers and pax records strictly, refusing what tar would merely tolerate."""

import re
from struct import Struct
from typing import NamedTuple
from zlib import adler32

from storage_job.errors import CorruptedArchive

BLOCK = 512
# Extended attributes are stored in pax headers; a larger header would only waste memory.
MAX_PAX_BYTES = 4 * 1024 * 1024
_POSIX = b"ustar\x0000"
_GNU = b"ustar  \x00"
_OCTAL = re.compile(rb" *([0-7]+)[ \x00]*")
_BASE_256 = 0x80
_MAX_NUMBER = 2**63 - 1
# name, size, checksum, type, link name, magic with version, prefix
_FIELDS = Struct("100s 24x 12s 12x 8s c 100s 8s 80x 155s 12x")
_HALF = BLOCK // 2
_PAX_LENGTH = re.compile(rb"[1-9][0-9]{0,7}(?= )")
_DECIMAL = re.compile(rb"[0-9]{1,18}")
_PAX_NAMES = (b"path", b"linkpath", b"GNU.sparse.name")
# tar acts on these and the scanner understands them; with other GNU keywords the two could disagree.
SPARSE_KEYWORDS = {b"GNU.sparse.major", b"GNU.sparse.minor", b"GNU.sparse.name", b"GNU.sparse.realsize"}

PaxRecords = dict[bytes, bytes]


class Header(NamedTuple):
    kind: bytes
    name: bytes
    link_name: bytes
    size: int
    posix: bool
    block: bytes


def parse_header(block: bytes) -> Header:
    name, size, checksum, kind, link_name, magic, prefix = _FIELDS.unpack(block)
    # The checksum field itself counts as eight spaces.
    if parse_number(checksum) != _sum_of(block) - sum(checksum) + 8 * 0x20:
        raise CorruptedArchive("a tar header has a wrong checksum")
    if magic not in (_POSIX, _GNU):
        raise CorruptedArchive("a tar header has an unknown format")
    posix = magic == _POSIX
    name = _text(name)
    # GNU headers use the prefix field for other things.
    if posix and prefix[0]:
        name = _text(prefix) + b"/" + name
    return Header(kind, name, _text(link_name), parse_number(size), posix, block)


def set_mode(block: memoryview, mode: int) -> None:
    """Change the mode in a header, and update the checksum."""
    block[100:108] = b"%07o\0" % mode
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % _sum_of(bytes(block))


def _sum_of(block: bytes) -> int:
    """Return the sum of all bytes.

    It is the lower half of Adler-32, which is exact because 256 bytes stay below its modulus.
    """
    return (adler32(block[:_HALF], 0) & 0xFFFF) + (adler32(block[_HALF:], 0) & 0xFFFF)


def padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def parse_number(field: bytes) -> int:
    """Parse an octal number, or GNU's big-endian form for large ones; refuse negative numbers."""
    if octal := _OCTAL.fullmatch(field):
        return int(octal[1], 8)
    value = int.from_bytes(field[1:], "big")
    if field[0] != _BASE_256 or value > _MAX_NUMBER:
        raise CorruptedArchive("a tar header contains an invalid number")
    return value


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def parse_pax(payload: bytes) -> PaxRecords:
    """Parse the records of a pax extended header, which override fields of the next header."""
    records: PaxRecords = {}
    position = 0
    while position < len(payload):
        found = _PAX_LENGTH.match(payload, position)
        end = position + int(found[0]) if found else 0
        if not found or not found.end() < end <= len(payload) or payload[end - 1] != ord("\n"):
            raise CorruptedArchive("a pax header is malformed")
        keyword, equals, value = payload[found.end() + 1 : end - 1].partition(b"=")
        if not keyword or not equals:
            raise CorruptedArchive("a pax header is malformed")
        _check_record(keyword, value)
        records[keyword] = value
        position = end
    return records


def parse_decimal(value: bytes) -> int:
    if not _DECIMAL.fullmatch(value):
        raise CorruptedArchive("a pax header contains an invalid number")
    return int(value)


def _check_record(keyword: bytes, value: bytes) -> None:
    if keyword.startswith(b"GNU.") and keyword not in SPARSE_KEYWORDS:
        unsupported = keyword.decode(errors="replace")
        raise CorruptedArchive(f"a pax header uses the unsupported keyword {unsupported}")
    # tar would cut such a name at the zero byte and write to another path than the one checked here.
    if keyword in _PAX_NAMES and (not value or b"\0" in value):
        raise CorruptedArchive("a pax header contains an impossible name")
