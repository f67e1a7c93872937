"""The running limits, counted as the product counts them."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp
from aiodocker import DockerError
from sqlalchemy.exc import SQLAlchemyError

from codehub.adapters.s3.archives import S3Archives
from codehub.bootstrap import policy_of
from codehub.db.session import DatabaseUnavailable
from codehub.domain.conditions import ArchiveFact
from codehub.domain.failures import Failure
from codehub.domain.limits import RunningLimits, counts_as_running
from codehub.domain.states import Operation
from gameday.checks.archives import ArchiveWatch, Loss, committed_of, list_objects
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows
from gameday.faults.modes import Away
from gameday.stage.stage import Stage


def check_limits(rows: Iterable[Row], limits: RunningLimits) -> Iterator[str]:
    """What one look at all rows shows; they come from one statement, so they were true at one time."""
    running = Counter(row.owner_id for row in rows if _takes_a_place(row))
    for owner, count in running.items():
        if count > limits.per_user:
            yield f"User {owner} has {count} workspaces that are or shall be running, of {limits.per_user}."
    if running.total() > limits.total:
        yield f"{running.total()} workspaces are or shall be running, of {limits.total}."


def _takes_a_place(row: Row) -> bool:
    # The purge of a broken workspace may find a container that nobody had seen when its place was given away.
    if row.purge:
        return False
    return counts_as_running(
        row.phase, row.desired_state, deleted=row.deleted, container_exists=row.container_exists
    )


# Of a calm, in which only S3 is away: a job tries for a while before it gives up.
PATIENCE = timedelta(seconds=60)


@dataclass(frozen=True)
class LockedOut:
    """A workspace whose owner is refused, although its home is on the disk."""

    workspace_id: str
    words: str


class OutageWatch:
    """Knows since when nothing but S3 has been away, without a break."""

    def __init__(self) -> None:
        self._since: datetime | None = None

    def notice(self, now: datetime, *, only_s3_is_away: bool) -> bool:
        """Whether that has lasted so long that nobody may be locked out any more."""
        self._since = (self._since or now) if only_s3_is_away else None
        return self._since is not None and now - self._since >= PATIENCE


def is_uploading(row: Row) -> bool:
    """Return whether an upload is claimed but not committed, so that the home is still on disk."""
    return row.operation is Operation.ARCHIVING and row.volume_is_complete


def find_locked_out(rows: Iterable[Row], now: datetime) -> Iterator[LockedOut]:
    """Whoever has held the same claim for too long, with nothing uploaded yet."""
    for row in rows:
        if is_uploading(row) and row.claimed_at is not None and now - row.claimed_at >= PATIENCE:
            yield LockedOut(row.workspace_id, f"It has been claimed for ARCHIVING since {row.claimed_at}.")


LOOK_SECONDS = 0.3
# A server that is stopped answers nobody; the next look comes anyway.
PATIENCE_SECONDS = 5.0
LOOKS_PER_LISTING = 7
# Between one process that is about to end and the next there is a moment with both to be seen.
SECOND_LOOK_SECONDS = 0.2
OUTAGES = (DatabaseUnavailable, SQLAlchemyError, OSError, Failure, DockerError, aiohttp.ClientError)


class Watcher:
    """Samples until it is told to stop; an outage costs a sample, never more."""

    def __init__(self, stage: Stage, findings: Findings) -> None:
        self._stage = stage
        self._findings = findings
        policy = policy_of(stage.settings)
        self._limits = policy.limits
        self._archives = ArchiveWatch(policy.graces)
        self._outages = OutageWatch()
        self.looks = 0
        self.missed = 0
        self.phases: Counter[str] = Counter()

    async def watch(self, until: asyncio.Event) -> None:
        async with S3Archives.open(self._stage.store) as archives:
            while not until.is_set():
                try:
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        await self._look(archives)
                    self.looks += 1
                except OUTAGES:
                    self.missed += 1
                await asyncio.sleep(LOOK_SECONDS)

    async def _look(self, archives: S3Archives) -> None:
        rows = await read_rows(self._stage.database)
        self.phases = Counter(row.phase for row in rows if not row.deleted)
        self._findings.note(Invariant.LIMITS, check_limits(rows, self._limits))
        self._look_for_locked_out(rows)
        await self._count_instances()
        if self.looks % LOOKS_PER_LISTING == 0:
            await self._list_archives(archives, rows)

    def _look_for_locked_out(self, rows: list[Row]) -> None:
        now, stage = datetime.now(UTC), self._stage
        s3_is_away = isinstance(stage.s3.mode, Away) and stage.calm.is_kept
        self._findings.note(Invariant.NOT_LOCKED_OUT, (), checks=s3_is_away)
        if self._outages.notice(now, only_s3_is_away=s3_is_away and not stage.away()):
            for found in find_locked_out(rows, now):
                self._findings.note(Invariant.NOT_LOCKED_OUT, [found.words], found.workspace_id, checks=0)

    async def _count_instances(self) -> None:
        there = await self._stage.all_instances()
        if any(len(names) > 1 for names in there.values()):
            await asyncio.sleep(SECOND_LOOK_SECONDS)
            again = await self._stage.all_instances()
            there = {each: [*set(names) & set(again.get(each, ()))] for each, names in there.items()}
        for workspace_id, names in there.items():
            doubled = [f"{len(names)} instances are there: {', '.join(sorted(names))}."] * (len(names) > 1)
            self._findings.note(Invariant.ONE_INSTANCE, doubled, workspace_id)

    async def _list_archives(self, archives: S3Archives, rows: list[Row]) -> None:
        committed = committed_of(await list_objects(archives))
        for loss in list(self._archives.look(rows, committed, datetime.now(UTC))):
            # Asked for by its name: a store that has just started may not list everything yet.
            if await archives.observe(loss.key) is ArchiveFact.ABSENT:
                self._blame(loss)
        self._findings.note(Invariant.ARCHIVE_KEPT, (), checks=len(committed))

    def _blame(self, loss: Loss) -> None:
        self._findings.note(Invariant.ARCHIVE_KEPT, [loss.words], loss.workspace_id, checks=0)
