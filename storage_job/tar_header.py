"""One 512-byte tar header, read strictly: what tar would merely tolerate is refused."""

import re
from typing import NamedTuple

from storage_job.errors import CorruptedArchive

BLOCK = 512
_POSIX = b"ustar\x0000"
_GNU = b"ustar  \x00"
_OCTAL = re.compile(rb" *([0-7]+)[ \x00]*")
_BASE_256 = 0x80
_LARGEST = 2**63 - 1


class Header(NamedTuple):
    kind: bytes
    name: bytes
    link_name: bytes
    size: int
    posix: bool
    block: bytes


def parse_header(block: bytes) -> Header:
    if number(block[148:156]) != sum(block) - sum(block[148:156]) + 8 * 0x20:
        raise CorruptedArchive("a tar header has a wrong checksum")
    magic = block[257:265]
    if magic not in (_POSIX, _GNU):
        raise CorruptedArchive("a tar header is of an unknown format")
    posix = magic == _POSIX
    name = _text(block[0:100])
    # GNU headers use the prefix field for other things.
    if posix and block[345]:
        name = _text(block[345:500]) + b"/" + name
    return Header(block[156:157], name, _text(block[157:257]), number(block[124:136]), posix, block)


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
    return field.split(b"\0", 1)[0]
