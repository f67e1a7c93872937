"""Whether something else is mounted inside of a volume."""

import re
from pathlib import Path

from storage_job.errors import failed

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def require_no_mounts(data_dir: Path) -> None:
    """Refuse a volume with a mount inside: what is there is neither to be archived nor to be removed."""
    inside = bytes(data_dir.resolve()) + b"/"
    for line in _MOUNTS.read_bytes().splitlines():
        place = _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), line.split(b" ")[4])
        if place.startswith(inside):
            name = place.removeprefix(inside).decode(errors="backslashreplace")
            raise failed(f"Something is mounted at {name!r} in the volume; unmount it, then try again.")
