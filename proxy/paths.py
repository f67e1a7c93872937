"""Normalizes a path as the most lenient server would, so that no spelling gets around a check."""

import re
from urllib.parse import unquote_to_bytes

# A path without any of these is already in plain form.
UNUSUAL = re.compile(rb"%|//|/\.|\\|;")
SEPARATOR = re.compile(rb"[/\\]+")
# Each pass removes one layer of `%25`.
MAX_DECODINGS = 4


def plain_path(target: bytes) -> bytes:
    """Return the path decoded, without parameters, `.` and `..`, and with single slashes."""
    path = target.partition(b"?")[0]
    return _normalize(path) if UNUSUAL.search(path) is not None else path


def _normalize(path: bytes) -> bytes:
    for _ in range(MAX_DECODINGS):
        path = unquote_to_bytes(path)
    segments: list[bytes] = []
    for each in SEPARATOR.split(path):
        segment = each.partition(b";")[0]
        if segment == b"..":
            del segments[-1:]
        elif segment not in {b"", b"."}:
            segments.append(segment)
    return b"/" + b"/".join(segments)
