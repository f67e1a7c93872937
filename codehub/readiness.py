"""Signal readiness to the supervisor."""

from contextlib import suppress
from pathlib import Path


def signal_ready(ready_file: Path | None) -> None:
    """Create the file, if there is one; the supervisor may have removed its directory."""
    if ready_file is not None:
        with suppress(FileNotFoundError):
            ready_file.touch()
