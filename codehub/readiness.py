"""How a process of ours tells whoever started it that it is ready."""

from contextlib import suppress
from pathlib import Path


def signal_ready(ready_file: Path | None) -> None:
    """Make the file, if one was asked for; whoever waited for it may have gone with its directory."""
    if ready_file is not None:
        with suppress(FileNotFoundError):
            ready_file.touch()
