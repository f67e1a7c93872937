"""The files of an instance: its state and its log."""

import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

LOCK_NAME = "alive.lock"
STATE_NAME = "state.json"
LOG_NAME = "output.log"
# The directory for the instance's sockets; only CodeHub can enter its parent.
SOCKETS_NAME = "sockets"


@dataclass(frozen=True)
class InstanceState:
    """The IDE and the secret of an instance. Whether it runs is known from its lock."""

    ide: str
    token: str = field(repr=False)
    # The requested image_ref, which can mean another IDE at the next start. Older records have None.
    image_ref: str | None = None
    # New for every start, so that the proxy never sends the secret of one instance to the next. Records of
    # older versions have a port instead.
    socket: str = field(default_factory=lambda: f"ide-{secrets.token_hex(4)}.sock")

    @property
    def ports_socket(self) -> str:
        """Return the name of the agent's socket for the ports of the instance."""
        return f"ports-{self.socket}"

    def write(self, directory: Path) -> None:
        """Replace the file atomically. It holds the token, so only its owner can read it."""
        partial = directory / f"{STATE_NAME}.partial"
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(directory / STATE_NAME)


def read_state(directory: Path) -> InstanceState | None:
    """Return the state, or None if it is absent, unreadable, or of a version that used ports."""
    try:
        document = json.loads((directory / STATE_NAME).read_text(encoding="utf-8"))
        return InstanceState(
            str(document["ide"]), str(document["token"]), document.get("image_ref"), str(document["socket"])
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def state_exists(directory: Path) -> bool:
    """Return whether there is an instance; an exited one exists until it is stopped."""
    return (directory / STATE_NAME).exists()


LIMIT_BYTES = 5 * 1024 * 1024
KEPT = 2


@dataclass(frozen=True)
class Log:
    """The output of one instance. `output.log.1` is the newest rotated part."""

    directory: Path
    limit_bytes: int = LIMIT_BYTES

    @property
    def path(self) -> Path:
        return self.directory / LOG_NAME

    def open(self) -> int:
        """Open for appending, so that writes after a rotation go to the new end."""
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def rotate(self) -> None:
        """Copy and truncate: the instance keeps its descriptor, so renaming would not work."""
        size = self._size()
        if size < self.limit_bytes:
            return
        for number in range(KEPT, 1, -1):
            if self._older(number - 1).exists():
                self._older(number - 1).replace(self._older(number))
        # Never more than the limit, even if the log has grown far beyond it.
        self._older(1).write_bytes(self._read_from(size - self.limit_bytes))
        os.truncate(self.path, 0)

    def tail(self, lines: int) -> tuple[bytes, int]:
        """Return the last lines that were kept, and the offset to continue from."""
        content, offset = self.read_since(max(0, self._size() - self.limit_bytes))
        for number in range(1, KEPT + 1):
            if content.count(b"\n") <= lines and self._older(number).exists():
                content = self._older(number).read_bytes() + content
        return b"".join(content.splitlines(keepends=True)[-lines:]) if lines > 0 else b"", offset

    def read_since(self, offset: int) -> tuple[bytes, int]:
        """Return what was written since, and the next offset. Return nothing if there is no log."""
        try:
            size = self.path.stat().st_size
            # A shorter file was rotated, so all of it is new.
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
