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

from codehub.adapters.local.locks import hold_blocking
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import parse_workspace_id, volume_name
from codehub.domain.states import ErrorReason

# Proves that this is the root and not what is left of it while its disk is away; holds its identity.
SENTINEL = ".codehub-root"
_IDENTITY_LOCK = "identity"
PRIVATE = 0o700
Result = TypeVar("Result")


@dataclass(frozen=True)
class LocalRoot:
    """Paths below the root; `path` is resolved, since instances run elsewhere."""

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
        """What tells an instance's processes from all others, also from those of another root."""
        return hashlib.sha256(os.fsencode(self.instance(workspace_id))).hexdigest()

    def prepare(self) -> str:
        """Set the root up and return its identity; one that it has already is kept.

        Only for the first time: done later, it would bless an unmounted disk as empty.
        """
        for directory in (self.path, self.volumes, self.instances, self.locks):
            directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            hold_blocking(self.locks / _IDENTITY_LOCK, stack)
            return self.read_identity() or self._write_identity(str(uuid4()))

    def read_identity(self) -> str | None:
        """What the sentinel says; None if there is none, or one from before roots had an identity."""
        try:
            return (self.path / SENTINEL).read_text(encoding="utf-8", errors="replace").strip() or None
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _write_identity(self, identity: str) -> str:
        """All of it or nothing, also if the power fails meanwhile."""
        partial = self.path / f"{SENTINEL}.partial"
        with partial.open("w", encoding="utf-8") as file:
            file.write(f"{identity}\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path / SENTINEL)
        sync_directory(self.path)
        return identity

    def check(self) -> None:
        """Raise unless the root is there: without its sentinel, an empty directory proves nothing."""
        if not (self.path / SENTINEL).is_file():
            raise Transient(
                ErrorReason.UNREACHABLE,
                f"The data directory {self.path} is not there or not set up; is its disk mounted?",
            )

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do file system work in a thread, once the root is known to be there."""

        def guarded() -> Result:
            with translate_errors():
                self.check()
                return work()

        return await asyncio.to_thread(guarded)


def sync_directory(path: Path) -> None:
    """Return once the names in it would survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """A disk that gives errors is like a service that does not answer."""
    try:
        yield
    except OSError as error:
        raise Transient(
            ErrorReason.UNREACHABLE, f"The data directory cannot be used ({error}); check its disk."
        ) from error


class LocalHomeStore:
    """The identity is in the root's sentinel file, so it goes wherever the homes go."""

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
