"""The files of an instance: its state and its log."""

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


LIMIT_BYTES = 5 * 1024 * 1024
KEPT = 2


@dataclass(frozen=True)
class Log:
    """One instance's output and its older parts, `output.log.1` being the newest of these."""

    directory: Path
    limit_bytes: int = LIMIT_BYTES

    @property
    def path(self) -> Path:
        return self.directory / LOG_NAME

    def open(self) -> int:
        """Appending, so that what is written after a rotation goes to the new end."""
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def rotate(self) -> None:
        """Copy and truncate: the instance keeps its descriptor, so the file cannot just be renamed."""
        size = self._size()
        if size < self.limit_bytes:
            return
        for number in range(KEPT, 1, -1):
            if self._older(number - 1).exists():
                self._older(number - 1).replace(self._older(number))
        # No more than the limit, however fast it has grown.
        self._older(1).write_bytes(self._read_from(size - self.limit_bytes))
        os.truncate(self.path, 0)

    def tail(self, lines: int) -> tuple[bytes, int]:
        """The last lines, as far as they have been kept, and the offset at which to read on."""
        content, offset = self.read_since(max(0, self._size() - self.limit_bytes))
        for number in range(1, KEPT + 1):
            if content.count(b"\n") <= lines and self._older(number).exists():
                content = self._older(number).read_bytes() + content
        return b"".join(content.splitlines(keepends=True)[-lines:]) if lines > 0 else b"", offset

    def read_since(self, offset: int) -> tuple[bytes, int]:
        """What has been written since, and the next offset; nothing if there is no log any more."""
        try:
            size = self.path.stat().st_size
            # Shorter than before: it has been rotated, so all of it is new.
            start = offset if size >= offset else 0
            content = self._read_from(start)
        except FileNotFoundError:
            return b"", 0
        return content, start + len(content)

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _older(self, number: int) -> Path:
        return self.directory / f"{LOG_NAME}.{number}"

    def _read_from(self, offset: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(max(0, offset))
            return file.read(self.limit_bytes)
