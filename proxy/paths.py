"""Reads a path as the most lenient server would, so that a check cannot be passed by spelling."""

import re
from urllib.parse import unquote_to_bytes

# Most paths have none of these, and are what they seem.
UNUSUAL = re.compile(rb"%|//|/\.|\\|;")
SEPARATOR = re.compile(rb"[/\\]+")
# Each pass removes one layer of `%25`; nobody needs more of them.
MAX_DECODINGS = 4


def plain_path(target: bytes) -> bytes:
    """Return the path decoded, without parameters, with single slashes, and without `.` and `..`."""
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
