"""The `.meta` of an archive: its existence commits the archive, its first line verifies the content."""

import re
from dataclasses import asdict, dataclass

from storage_job.errors import CorruptedArchive

SUFFIX = ".meta"
# A meta has four short lines; a larger object is not a meta.
LIMIT_BYTES = 64 * 1024
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")
_NUMBER = re.compile(r"(size|uncompressed|entries):([0-9]{1,18})")


@dataclass(frozen=True)
class ArchiveMeta:
    # Fields are in the order of the lines.
    sha256: str
    # Older archives have only the first line.
    size: int | None = None
    uncompressed: int | None = None
    entries: int | None = None

    def to_bytes(self) -> bytes:
        values = asdict(self).items()
        return "".join(f"{name}:{value}\n" for name, value in values if value is not None).encode()


def parse_meta(content: bytes) -> ArchiveMeta:
    lines = [line.strip() for line in content.decode("ascii", "replace").splitlines()] or [""]
    digest = _SHA256.fullmatch(lines[0])
    if digest is None:
        raise CorruptedArchive("its .meta does not begin with a sha256 line")
    numbers = {found[1]: int(found[2]) for found in map(_NUMBER.fullmatch, lines[1:]) if found}
    return ArchiveMeta(digest[1], **numbers)
