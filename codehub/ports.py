"""Interfaces to the outside world. The docstring of each method is its contract.

Every method is idempotent. A provider that cannot be reached raises `Transient(UNREACHABLE)`, also from
`observe` and `list_all`: an outage must never look like absence.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NoReturn, Protocol

from codehub.domain.conditions import ArchiveFact, ContainerFact, VolumeFact, WorkspaceId
from codehub.domain.states import Operation

# A step calls this only when it has made progress; a step that makes none for long is ended.
Report = Callable[["Progress"], None]
# By workspace, what a restart would change (image, memory, …), in words for people.
Outdated = Mapping[WorkspaceId, tuple[str, ...]]


class ImageMissing(Exception):
    """The image has to be pulled first."""


@dataclass(frozen=True)
class Progress:
    """The progress of a long step; `total` is None if it is unknown."""

    step: str
    done: int = 0
    total: int | None = None
    unit: str = "bytes"


@dataclass(frozen=True)
class InstanceRequest:
    """The IDE to start for a workspace, on its volume."""

    workspace_id: WorkspaceId
    image_ref: str


@dataclass(frozen=True)
class Upstream:
    """The address of an instance, how the proxy must change requests for it, and which IDE it is."""

    host: str
    port: int
    keep_prefix: bool
    headers: tuple[tuple[str, str], ...] = ()
    ide: str = ""


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


class Instances(Protocol):
    """IDE instances: containers, or process groups on the local backend."""

    async def observe(self, workspace_id: WorkspaceId) -> ContainerFact:
        """Return whether the instance exists, runs and responds.

        READY if it accepts traffic, UNHEALTHY if it runs but fails its health check, NOT_READY if it exists
        but does not run, ABSENT if there is none. One failed check makes it UNHEALTHY; the caller decides how
        long that may last.
        """

    async def list_all(self) -> Mapping[WorkspaceId, ContainerFact]:
        """Return all instances in one call; the others are absent."""

    async def find_outdated(self, workspace_id: WorkspaceId | None = None) -> Outdated:
        """Return the running instances that a restart would change, and how; of one workspace, or of all.

        An instance is left out if this is unknown, or if its image would have to be pulled first.
        """

    async def start(self, request: InstanceRequest, report: Report) -> None:
        """Start the instance and return once it accepts traffic; replace one that has exited.

        A running instance is left alone, even if its image or limits are outdated. One that does not respond
        is waited for like a new one.

        Raise ImageMissing if the image has to be pulled, Permanent(IMAGE_PULL_FAILED) if it cannot be pulled,
        Transient(ACTION_FAILED) if the volume does not exist or the IDE does not become ready in time; in the
        latter case the instance is removed, so that the next start creates a new one.
        """

    async def pull(self, image_ref: str, report: Report) -> None:
        """Pull the image; return at once if it exists locally.

        Raise Permanent(IMAGE_PULL_FAILED) if that is impossible. There is no time limit: the caller ends a
        pull that makes no progress.
        """

    async def stop(self, workspace_id: WorkspaceId) -> None:
        """Ask the instance to exit, then kill and remove it; succeed if there is none."""

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        """Return the address of the instance, or None if it does not run."""

    def read_log(self, workspace_id: WorkspaceId, *, tail: int, follow: bool) -> AsyncIterator[bytes]:
        """Yield the last lines of its output, then new output if `follow`; nothing if there is none."""


class Changes(Protocol):
    """Events of the provider, which are faster than the next sweep."""

    def follow(self) -> AsyncIterator[WorkspaceId]:
        """Yield workspaces whose container exited or whose container or volume was removed; never end.

        It survives outages. Events may be missed, and may come although nothing is wrong.
        """


class Volumes(Protocol):
    """Homes: Docker volumes, or directories on the local backend."""

    async def observe(self, workspace_id: WorkspaceId) -> VolumeFact:
        """Return PRESENT or ABSENT; the provider does not know whether the home is complete."""

    async def list_all(self) -> Sequence[WorkspaceId]:
        """Return all volumes in one call."""

    async def provision(self, workspace_id: WorkspaceId) -> None:
        """Create an empty volume; leave an existing one as it is."""

    async def remove(self, workspace_id: WorkspaceId) -> None:
        """Remove the volume; succeed if absent. Raise Transient(ACTION_FAILED) while an instance uses it."""


class HomeStore(Protocol):
    """The directory or Docker engine that holds all homes; it has an identity."""

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


@dataclass(frozen=True)
class ActivityBatch:
    """Entries of the buffer; `rejected` ones had no valid workspace id or time, and were removed."""

    used_at: Mapping[WorkspaceId, datetime]
    rejected: int = 0


class ActivityBuffer(Protocol):
    """When each workspace was last used: a buffer between the proxy and the database."""

    async def record(self, used_at: Mapping[WorkspaceId, datetime]) -> None:
        """Keep the latest time of each workspace."""

    async def take(self, limit: int) -> ActivityBatch:
        """Read up to `limit` entries; remove only invalid ones."""

    async def discard(self, used_at: Mapping[WorkspaceId, datetime]) -> None:
        """Remove stored entries, unless they have a later time by now."""


class ProgressBoard(Protocol):
    """The progress of the current step of each workspace, for people.

    Best-effort: no method raises for an outage or takes longer than a second.
    """

    async def post(self, workspace_id: WorkspaceId, progress: Progress) -> None:
        """Show the progress for ten seconds, or until the next post."""

    async def read(self, workspace_ids: Collection[WorkspaceId]) -> Mapping[WorkspaceId, Progress] | None:
        """Return the latest progress of each workspace that has a recent one; None if unavailable."""

    async def clear(self, workspace_id: WorkspaceId) -> None:
        """Remove the progress; succeed if there is none."""


class EventBus(Protocol):
    """Live updates for browsers; a lost one costs only time, because a reconnect sends a snapshot."""

    async def publish(self, user_id: str, message: str) -> None:
        """Send to all subscribers for this user; there may be none."""


# The event in a message after a session or token was revoked or its user was disabled.
CREDENTIALS_CHANGED = "credentials_changed"


@dataclass(frozen=True)
class BusMessage:
    """A message for one user; a user id of None means that messages for any user may have been missed."""

    user_id: str | None
    payload: str = ""


class EventSubscription(Protocol):
    """The receiving end of the event bus, for the users that this process serves."""

    async def run(self, deliver: Callable[[BusMessage], None]) -> NoReturn:
        """Deliver until canceled, also after outages; `deliver` must be quick and must not raise.

        When messages may have been missed, also at the start, one for all users is delivered as soon as
        everyone followed is subscribed again. A broadcast arrives as a message for all users too.
        """

    async def follow(self, user_id: str) -> bool:
        """Return True once everything that is published for this user from now on will be delivered.

        Return False if that takes too long: then a message for this user or for all users is delivered as
        soon as the subscription works. It may be called again for the same user.
        """

    def unfollow(self, user_id: str) -> None:
        """Stop delivering, at the latest when a later `follow` has returned True; succeed if not followed."""


class Convergence(Protocol):
    """Wakes the workflow of a workspace."""

    async def wake(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        """Start or signal the workflow. Never raise for an outage: the next sweep heals a lost wake."""

    async def resume(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        """Start the workflow unless it runs. Never raise for an outage."""


@dataclass(frozen=True)
class SweepState:
    """The state of one schedule."""

    schedule_id: str
    paused: bool
    running: bool
    last_started_at: datetime | None
    next_at: datetime | None


class StepResult(StrEnum):
    """How a step ended."""

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True)
class StepRecord:
    """One step of an attempt of an operation.

    A step whose worker was lost runs again: `started_at` is of the last run, `error` of the last failed run.
    """

    name: str
    operation_attempt: int
    result: StepResult
    scheduled_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: int = 1
    error: str | None = None


class Histories(Protocol):
    """The steps of operations, kept for some days."""

    async def read_steps(
        self, workspace_id: WorkspaceId, operation: Operation, claimed_at: datetime, ended_at: datetime | None
    ) -> Sequence[StepRecord]:
        """Return the steps of all attempts of the operation that was claimed at this time, in order.

        Return nothing if they are no longer kept. Raise Transient if the store does not respond.
        """


class Sweeps(Protocol):
    """The schedules of the sweeps."""

    async def read(self) -> Sequence[SweepState]:
        """Return the existing schedules. Raise Transient if Temporal does not respond."""
