"""What the control plane needs from the outside world. Each method's contract is in its docstring.

Every method is idempotent. A provider that cannot be reached raises `Transient(UNREACHABLE)`, also from
`look` and `list_all`: silence must never be mistaken for absence.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NoReturn, Protocol

from codehub.domain.conditions import ArchiveFact, ContainerFact, VolumeFact, WorkspaceId
from codehub.domain.states import Operation

# A step calls it when it has come further, and only then: one that has not for long is ended.
Report = Callable[["Progress"], None]
# By workspace, what a restart would change: image, memory and so on, in people's words.
Outdated = Mapping[WorkspaceId, tuple[str, ...]]


class ImageMissing(Exception):
    """What to start has to be pulled first."""


@dataclass(frozen=True)
class Progress:
    """How far a long step has come; `total` is None while nobody knows."""

    step: str
    done: int = 0
    total: int | None = None
    unit: str = "bytes"


@dataclass(frozen=True)
class InstanceRequest:
    """What to start: one IDE for one workspace, on that workspace's volume."""

    workspace_id: WorkspaceId
    image_ref: str


@dataclass(frozen=True)
class Upstream:
    """Where an instance takes traffic, what the proxy must do to requests for it, and which IDE it is."""

    host: str
    port: int
    keep_prefix: bool
    headers: tuple[tuple[str, str], ...] = ()
    ide: str = ""


@dataclass(frozen=True)
class StoredArchive:
    """A committed archive: its meta has been written."""

    key: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class ExpectedArchive:
    """What the database recorded when an archive was committed; None for what it does not know."""

    size_bytes: int | None = None
    sha256: str | None = None


# For an archive of an older installation, of which the database has no record.
UNRECORDED = ExpectedArchive()


@dataclass(frozen=True)
class ArchiveStore:
    """Where the archives are: what their adapter and every storage job need, and all that a job is told."""

    bucket: str
    access_key: str
    secret_key: str = field(repr=False)
    endpoint_url: str | None = None
    region: str = "us-east-1"


@dataclass(frozen=True)
class ArchiveObject:
    """One object below `archives/`, as the store lists it; metas are objects of their own."""

    key: str
    size_bytes: int
    modified_at: datetime


class Instances(Protocol):
    """IDE instances: containers, or process groups on the local backend."""

    async def observe(self, workspace_id: WorkspaceId) -> ContainerFact:
        """Say whether it exists, runs and answers.

        READY when it takes traffic, UNHEALTHY when it runs but does not answer its health check, NOT_READY
        when it exists but does not run, ABSENT when there is none. One miss makes it UNHEALTHY: how long that
        may last is not the provider's to say.
        """

    async def list_all(self) -> Mapping[WorkspaceId, ContainerFact]:
        """All instances in one call; what is not in it is absent."""

    async def find_outdated(self, workspace_id: WorkspaceId | None = None) -> Outdated:
        """Which running instances a start would now make differently, and in what; of one workspace, or all.

        Left out are those of which this cannot be told, and those whose image would have to be fetched first.
        """

    async def start(self, request: InstanceRequest, report: Report) -> None:
        """Return once it takes traffic; a running one is left alone, an exited one is replaced.

        A running one is left alone even if the image, the limits or anything else would be different now. One
        that does not answer is waited for like one that has just been started.

        Raise ImageMissing if its image is not here, Permanent(IMAGE_PULL_FAILED) for one that cannot be had,
        Transient(ACTION_FAILED) if the volume does not exist or the IDE does not become ready in time; in
        that last case nothing is left of the instance, so that the next start makes a new one.
        """

    async def pull(self, image_ref: str, report: Report) -> None:
        """Fetch the image; return at once if it is here.

        Raise Permanent(IMAGE_PULL_FAILED) if it cannot be had. It goes on while bytes arrive; whoever
        calls it ends one that stands still.
        """

    async def stop(self, workspace_id: WorkspaceId) -> None:
        """Ask it to end, then make it, and remove every trace; succeed if there is none."""

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        """Where it takes traffic; None if it does not."""

    def read_log(self, workspace_id: WorkspaceId, *, tail: int, follow: bool) -> AsyncIterator[bytes]:
        """The last lines of its output, then, if asked, what comes; nothing if there is none."""


class Changes(Protocol):
    """What the provider tells by itself: worth a look at once, instead of at the next sweep."""

    def follow(self) -> AsyncIterator[WorkspaceId]:
        """Workspaces whose container or volume has just ended or gone, through every outage, for ever.

        Some may be missed, and some may be told of although nothing is wrong.
        """


class Volumes(Protocol):
    """Homes: Docker volumes, or directories on the local backend."""

    async def observe(self, workspace_id: WorkspaceId) -> VolumeFact:
        """PRESENT or ABSENT; whether the home in it is complete is not the provider's to say."""

    async def list_all(self) -> Sequence[WorkspaceId]:
        """All volumes in one call."""

    async def provision(self, workspace_id: WorkspaceId) -> None:
        """Make an empty volume; one that exists is left alone with what it holds."""

    async def remove(self, workspace_id: WorkspaceId) -> None:
        """Remove the volume; succeed if absent. Raise Transient(ACTION_FAILED) while an instance uses it."""


class HomeStore(Protocol):
    """The one place that holds all homes: a directory, or a Docker engine. It has an identity of its own."""

    @property
    def location(self) -> str:
        """Where it is, for people."""

    async def read_identity(self) -> str | None:
        """Return what tells this store from every other one; None if it is not there or was never set up."""

    async def create_identity(self) -> str:
        """Set the store up and return its identity; one that it has already is kept.

        Several callers at once get the same one. Only for the first use of a store: later it would turn an
        unmounted disk or a wiped engine into an empty store.
        """


class StorageJobs(Protocol):
    """The isolated archive and restore program. One job per workspace at a time: a second one is refused.

    Job errors arrive as failures: archive not found DATA_LOST, S3 access UNREACHABLE, checksum mismatch
    ARCHIVE_CORRUPTED, anything else ACTION_FAILED. A cancelled call ends its job before it returns.
    """

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        """Upload the volume's content under this key, meta last; skip the upload if both are there."""

    async def restore(
        self, workspace_id: WorkspaceId, key: str, report: Report, expected: ExpectedArchive
    ) -> None:
        """Make the volume equal to the archive, creating it if absent; can be run again at any time.

        The archive must match what was recorded besides its meta: whoever can exchange one can exchange both.
        """

    async def create_empty(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        """Upload an archive of an empty home under this key."""


class Archives(Protocol):
    """The object store as the control plane sees it: look, list, remove; only jobs write."""

    async def observe(self, key: str | None) -> ArchiveFact:
        """PRESENT when the archive and its meta both answer; ABSENT only on a real 404.

        Without a key it still asks the store: ABSENT tells that it answers, Transient that it does not.
        """

    async def read_meta(self, key: str) -> StoredArchive | None:
        """What the archive's meta says of it; None if there is no such archive."""

    def list_all(self) -> AsyncIterator[ArchiveObject]:
        """Every object below `archives/`, page by page."""

    async def remove(self, key: str) -> None:
        """Remove an archive, its meta first: a half-removed one is not committed. Succeed if absent."""

    async def abort_stale_uploads(self, older_than: datetime) -> int:
        """Abort multipart uploads that began before then; return how many."""


@dataclass(frozen=True)
class ActivityBatch:
    """What was read of the buffer; `rejected` entries had no workspace's id or no time, and were removed."""

    used_at: Mapping[WorkspaceId, datetime]
    rejected: int = 0


class ActivityBuffer(Protocol):
    """When each workspace was last used, between the proxy and the database."""

    async def record(self, used_at: Mapping[WorkspaceId, datetime]) -> None:
        """Keep the latest time of each."""

    async def take(self, limit: int) -> ActivityBatch:
        """Read up to so many entries without removing them, except those that are no use of a workspace."""

    async def discard(self, used_at: Mapping[WorkspaceId, datetime]) -> None:
        """Remove entries that have been stored, unless they have moved on since."""


class ProgressBoard(Protocol):
    """How far the step under way of each workspace is, for people who watch.

    A courtesy: no method raises for an outage, or takes longer than a second.
    """

    async def post(self, workspace_id: WorkspaceId, progress: Progress) -> None:
        """Show it for ten seconds, or until the next one."""

    async def read(self, workspace_ids: Collection[WorkspaceId]) -> Mapping[WorkspaceId, Progress] | None:
        """Return the latest of each that has one of late; None if the board is unavailable."""

    async def clear(self, workspace_id: WorkspaceId) -> None:
        """Show nothing any more; succeed if nothing is shown."""


class EventBus(Protocol):
    """Live updates for people's browsers; losing one costs latency, a reconnect sends a snapshot."""

    async def publish(self, user_id: str, message: str) -> None:
        """Send to everyone who listens for this user; nobody listening is fine."""


# The event in a message that says: a session or token of this user was revoked, or the user was disabled.
CREDENTIALS_CHANGED = "credentials_changed"


@dataclass(frozen=True)
class BusMessage:
    """What came for one user; None means that anything may have happened to anybody: look at everything."""

    user_id: str | None
    payload: str = ""


class EventSubscription(Protocol):
    """The other end of the event bus, for the users that this process serves."""

    async def run(self, deliver: Callable[[BusMessage], None]) -> NoReturn:
        """Deliver until cancelled, through every outage; `deliver` must be quick and must not raise.

        Whenever messages may have been missed, at the beginning too, one for everybody is delivered once
        everyone followed is heard again. What is broadcast on the bus comes as one for everybody as well.
        """

    async def follow(self, user_id: str) -> bool:
        """Return True once everything published from now on for this user is delivered; again is fine.

        False after a bounded time without that: a message that says so, for this user or for everybody,
        is delivered as soon as the user is heard.
        """

    def unfollow(self, user_id: str) -> None:
        """Stop, at the latest when a later `follow` has returned True; succeed if nobody follows the user."""


class Convergence(Protocol):
    """The way to say: look at this workspace now."""

    async def wake(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        """Start or signal its workflow. Never raise for an outage: the next sweep heals a lost wake."""

    async def resume(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        """Start its workflow unless it runs, and leave a running one alone. Never raise for an outage."""


@dataclass(frozen=True)
class SweepState:
    """One schedule: what an operator wants to know of it."""

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

    One whose worker was lost is tried again: `started_at` is of the last try, `error` of the last failed one.
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
    """What is remembered of operations, step by step, for some days."""

    async def read_steps(
        self, workspace_id: WorkspaceId, operation: Operation, claimed_at: datetime, ended_at: datetime | None
    ) -> Sequence[StepRecord]:
        """The steps of all attempts of the operation that was claimed then, in order; none once forgotten.

        Raise Transient if they cannot be asked for.
        """


class Sweeps(Protocol):
    """The schedules that look at everything from time to time."""

    async def read(self) -> Sequence[SweepState]:
        """All of them; one that does not exist yet is left out. Raise Transient if they cannot be asked."""
