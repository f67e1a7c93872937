"""What is kept of an instance: written before it is started, so that none ever runs unrecorded."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

LOCK_NAME = "alive.lock"
STATE_NAME = "state.json"
LOG_NAME = "output.log"


@dataclass(frozen=True)
class InstanceState:
    """How to reach an instance. Whether it lives is not here: its lock tells that."""

    ide: str
    port: int
    token: str = field(repr=False)
    # What was asked for, which may mean another IDE at the next start; None where it was not recorded.
    image_ref: str | None = None

    def write(self, directory: Path) -> None:
        """Replace the state as a whole; it holds the token, so nobody else may read it."""
        partial = directory / f"{STATE_NAME}.partial"
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(directory / STATE_NAME)


def read_state(directory: Path) -> InstanceState | None:
    """None if there is none, or if what is there is not ours to understand."""
    try:
        document = json.loads((directory / STATE_NAME).read_text(encoding="utf-8"))
        return InstanceState(
            str(document["ide"]), int(document["port"]), str(document["token"]), document.get("image_ref")
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def exists(directory: Path) -> bool:
    """An exited instance exists too, until it is stopped."""
    return (directory / STATE_NAME).exists()
