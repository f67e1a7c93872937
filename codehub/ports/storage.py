"""Homes, archives, and the jobs between them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from codehub.domain.conditions import ArchiveFact, VolumeFact, WorkspaceId
from codehub.ports.progress import Report


@dataclass(frozen=True)
class StoredArchive:
    """A committed archive: its meta exists."""

    key: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class ExpectedArchive:
    """What the database recorded about an archive; None if it is unknown."""

    size_bytes: int | None = None
    sha256: str | None = None


# For an archive of an older installation.
UNRECORDED = ExpectedArchive()


@dataclass(frozen=True)
class ArchiveStore:
    """How to access the archives; all that a storage job knows about CodeHub."""

    bucket: str
    access_key: str
    secret_key: str = field(repr=False)
    endpoint_url: str | None = None
    region: str = "us-east-1"


@dataclass(frozen=True)
class ArchiveObject:
    """One object below `archives/`; a meta is an object too."""

    key: str
    size_bytes: int
    modified_at: datetime


@dataclass(frozen=True)
class Measurement:
    """Allocated disk space. An incomplete measurement ran out of time: there is more."""

    used_bytes: int
    complete: bool


class Volumes(Protocol):
    """Homes: directories, Docker volumes or Kubernetes claims."""

    async def observe(self, workspace_id: WorkspaceId) -> VolumeFact:
        """Return PRESENT or ABSENT; the provider does not know whether the home is complete.

        Raise OutOfReach if the home is on a disk of a node that does not respond.
        """

    async def list_all(self) -> Sequence[WorkspaceId]:
        """Return all volumes in one call."""

    async def provision(self, workspace_id: WorkspaceId) -> None:
        """Create an empty volume; leave an existing one as it is."""

    async def remove(self, workspace_id: WorkspaceId) -> None:
        """Remove the volume; succeed if absent. Raise Transient(ACTION_FAILED) while an instance uses it."""

    async def set_aside(self, workspace_id: WorkspaceId) -> None:
        """Give up a home that is out of reach, so that the next volume can be elsewhere; succeed if absent.

        Every file stays on its disk, where an administrator can get it if the node comes back. Raise
        Transient(ACTION_FAILED) with what to do if that cannot be guaranteed, while an instance uses the
        volume, or if the home is within reach.
        """

    async def measure(self, workspace_id: WorkspaceId, seconds: float) -> Measurement | None:
        """Return the disk space of a workspace, measured for at most this long.

        Return None if there is no home, or if this provider cannot measure cheaply. Running instances are not
        affected.
        """


class HomeStore(Protocol):
    """The directory, engine or namespace that holds all homes; it has an identity."""

    @property
    def location(self) -> str:
        """Where the store is, for people."""

    async def read_identity(self) -> str | None:
        """Return the identity of the store; None if it does not exist or was never set up."""

    async def create_identity(self) -> str:
        """Set the store up and return its identity; keep an existing identity.

        Concurrent callers get the same one. Call this only for the first use of a store: later it would turn
        an unmounted disk or a wiped engine into an empty store.
        """


class StorageJobs(Protocol):
    """The isolated archive and restore program. One job per workspace at a time: a second one is refused.

    Errors of a job become failures: archive not found DATA_LOST, S3 access UNREACHABLE, checksum mismatch
    ARCHIVE_CORRUPTED, anything else ACTION_FAILED. A canceled call ends its job before it returns.
    """

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        """Upload the content of the volume under this key, meta last; skip the upload if both exist."""

    async def restore(
        self, workspace_id: WorkspaceId, key: str, report: Report, expected: ExpectedArchive
    ) -> None:
        """Make the volume equal to the archive; create the volume if it is absent.

        The archive must match its meta and what the database recorded: an attacker who can replace the
        archive can replace the meta too.
        """

    async def create_empty(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        """Upload an archive of an empty home under this key."""

    async def remove_abandoned(self) -> int:
        """Remove what jobs left behind whose caller has died; return of how many. Live jobs go on.

        Call this now and then: to tell a dead caller from a slow one takes more than one call.
        """


class Archives(Protocol):
    """The object store as the control plane uses it: observe, list, remove. Only jobs write."""

    async def observe(self, key: str | None) -> ArchiveFact:
        """Return PRESENT if the archive and its meta exist, ABSENT only after a real 404.

        Without a key, return ABSENT if the store responds, and raise Transient if it does not.
        """

    async def read_meta(self, key: str) -> StoredArchive | None:
        """Return what the meta says about the archive, or None if there is no such archive."""

    def list_all(self) -> AsyncIterator[ArchiveObject]:
        """Yield all objects below `archives/`."""

    async def remove(self, key: str) -> None:
        """Remove the meta, then the archive: half an archive is never committed. Succeed if absent."""

    async def abort_stale_uploads(self, older_than: datetime) -> int:
        """Abort multipart uploads that began before this time; return how many."""
