"""One 512-byte tar header, read strictly: what tar would merely tolerate is refused."""

import re
from struct import Struct
from typing import NamedTuple
from zlib import adler32

from storage_job.errors import CorruptedArchive

BLOCK = 512
_POSIX = b"ustar\x0000"
_GNU = b"ustar  \x00"
_OCTAL = re.compile(rb" *([0-7]+)[ \x00]*")
_BASE_256 = 0x80
_LARGEST = 2**63 - 1
# name, size, checksum, type, link name, magic with version, prefix
_FIELDS = Struct("100s 24x 12s 12x 8s c 100s 8s 80x 155s 12x")
_HALF = BLOCK // 2


class Header(NamedTuple):
    kind: bytes
    name: bytes
    link_name: bytes
    size: int
    posix: bool
    block: bytes


def parse_header(block: bytes) -> Header:
    name, size, checksum, kind, link_name, magic, prefix = _FIELDS.unpack(block)
    # The field itself counts as eight spaces.
    if number(checksum) != _sum_of(block) - sum(checksum) + 8 * 0x20:
        raise CorruptedArchive("a tar header has a wrong checksum")
    if magic not in (_POSIX, _GNU):
        raise CorruptedArchive("a tar header is of an unknown format")
    posix = magic == _POSIX
    name = _text(name)
    # GNU headers use the prefix field for other things.
    if posix and prefix[0]:
        name = _text(prefix) + b"/" + name
    return Header(kind, name, _text(link_name), number(size), posix, block)


def _sum_of(block: bytes) -> int:
    """The sum of all bytes, as the lower half of Adler-32: exact, since 256 bytes stay below its modulus."""
    return (adler32(block[:_HALF], 0) & 0xFFFF) + (adler32(block[_HALF:], 0) & 0xFFFF)


def padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def number(field: bytes) -> int:
    """An octal number, or GNU's big-endian form for what does not fit; never negative."""
    if octal := _OCTAL.fullmatch(field):
        return int(octal[1], 8)
    value = int.from_bytes(field[1:], "big")
    if field[0] != _BASE_256 or value > _LARGEST:
        raise CorruptedArchive("a tar header holds an unreadable number")
    return value


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]
