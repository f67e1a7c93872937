"""The directory that holds all homes and instances of this machine."""

import asyncio
import contextlib
import hashlib
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from codehub.adapters.local.locks import lock_blocking
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import parse_workspace_id, volume_name
from codehub.domain.states import ErrorReason

# Holds the identity, and proves that this is the root and not the mount point of a missing disk.
SENTINEL = ".codehub-root"
_IDENTITY_LOCK = "identity"
PRIVATE = 0o700
Result = TypeVar("Result")


@dataclass(frozen=True)
class LocalRoot:
    """Paths below the root. `path` is resolved, because instances run in other directories."""

    path: Path

    @classmethod
    def at(cls, path: Path) -> "LocalRoot":
        return cls(path.resolve())

    @property
    def volumes(self) -> Path:
        return self.path / "volumes"

    @property
    def instances(self) -> Path:
        return self.path / "instances"

    @property
    def locks(self) -> Path:
        return self.path / "locks"

    def volume(self, workspace_id: WorkspaceId) -> Path:
        return self.volumes / volume_name(workspace_id)

    def instance(self, workspace_id: WorkspaceId) -> Path:
        return self.instances / parse_workspace_id(workspace_id)

    def marker(self, workspace_id: WorkspaceId) -> str:
        """Return the marker of an instance's processes; it is unique across roots."""
        return hashlib.sha256(os.fsencode(self.instance(workspace_id))).hexdigest()

    def prepare(self) -> str:
        """Create the root and return its identity; keep an existing one.

        Only for the first start: later, it would turn the mount point of a missing disk into an empty root.
        """
        for directory in (self.path, self.volumes, self.instances, self.locks):
            directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        with lock_blocking(self.locks / _IDENTITY_LOCK):
            return self.read_identity() or self._write_identity(str(uuid4()))

    def read_identity(self) -> str | None:
        """Return the identity, or None without a sentinel or with one of an older version."""
        try:
            return (self.path / SENTINEL).read_text(encoding="utf-8", errors="replace").strip() or None
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _write_identity(self, identity: str) -> str:
        """Write the identity atomically, even if the power fails."""
        partial = self.path / f"{SENTINEL}.partial"
        with partial.open("w", encoding="utf-8") as file:
            file.write(f"{identity}\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path / SENTINEL)
        sync_directory(self.path)
        return identity

    def check(self) -> None:
        """Raise Transient(UNREACHABLE) if the root has no sentinel, because its disk may be missing."""
        if not (self.path / SENTINEL).is_file():
            raise Transient(
                ErrorReason.UNREACHABLE,
                f"The data directory {self.path} is missing or not set up; is its disk mounted?",
            )

    async def run(self, work: Callable[[], Result]) -> Result:
        """Check the root, then run file system work in a thread."""

        def guarded() -> Result:
            with translate_errors():
                self.check()
                return work()

        return await asyncio.to_thread(guarded)


def sync_directory(path: Path) -> None:
    """Flush the entries of a directory to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Raise Transient(UNREACHABLE) for disk errors."""
    try:
        yield
    except OSError as error:
        raise Transient(
            ErrorReason.UNREACHABLE, f"The data directory cannot be used ({error}); check its disk."
        ) from error


class LocalHomeStore:
    """The local home store. Its identity is in the sentinel file, so it moves with the homes."""

    def __init__(self, root: Path) -> None:
        self._root = LocalRoot.at(root)

    @property
    def location(self) -> str:
        return f"the directory {self._root.path} on {socket.gethostname()}"

    async def read_identity(self) -> str | None:
        with translate_errors():
            return await asyncio.to_thread(self._root.read_identity)

    async def create_identity(self) -> str:
        with translate_errors():
            return await asyncio.to_thread(self._root.prepare)
