"""The checks that run while faults happen: limits, instances, archives, and who is locked out."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp
from aiodocker import DockerError
from sqlalchemy.exc import SQLAlchemyError

from codehub.adapters.s3.archives import S3Archives
from codehub.db.session import DatabaseUnavailable
from codehub.domain.conditions import ArchiveFact
from codehub.domain.failures import Failure
from codehub.domain.limits import RunningLimits, counts_as_running
from codehub.policy import policy_of
from gameday.checks.archives import ArchiveWatch, MissingArchive, find_committed, list_objects
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows
from gameday.faults.modes import Down
from gameday.stage.stage import Stage

# A storage job retries for a while before it gives its claim back.
LONGEST_CLAIM = timedelta(seconds=60)
POLL_SECONDS = 0.3
# A stopped server does not answer; try again later.
TIMEOUT_SECONDS = 5.0
POLLS_PER_LISTING = 7
# Two processes are visible for a moment while one replaces the other.
RECHECK_SECONDS = 0.2
OUTAGES = (DatabaseUnavailable, SQLAlchemyError, OSError, Failure, DockerError, aiohttp.ClientError)


def check_limits(rows: Iterable[Row], limits: RunningLimits) -> Iterator[str]:
    """Check rows that were read by one statement, so they are consistent."""
    running = Counter(row.owner_id for row in rows if _takes_slot(row))
    for owner, count in running.items():
        if count > limits.per_user:
            yield f"User {owner} has {count} running or requested workspaces; the limit is {limits.per_user}."
    if running.total() > limits.total:
        yield f"{running.total()} workspaces are running or requested; the limit is {limits.total}."


def _takes_slot(row: Row) -> bool:
    # The purge of a failed workspace may find a container that was unknown when its slot was given away.
    if row.purge:
        return False
    return counts_as_running(
        row.phase, row.desired_state, deleted=row.deleted, container_exists=row.container_exists
    )


@dataclass(frozen=True)
class LockedOut:
    """A workspace whose owner is refused although its home is on disk."""

    workspace_id: str
    words: str


class OutageWatch:
    """Measures how long S3 has been the only unavailable part, without interruption."""

    def __init__(self) -> None:
        self._since: datetime | None = None

    def update(self, now: datetime, *, only_s3_is_down: bool) -> bool:
        """Return whether the outage has lasted so long that nobody may be locked out any more."""
        self._since = (self._since or now) if only_s3_is_down else None
        return self._since is not None and now - self._since >= LONGEST_CLAIM


def find_locked_out(rows: Iterable[Row], now: datetime) -> Iterator[LockedOut]:
    """Find the workspaces that have been claimed for too long although nothing is uploaded yet."""
    for row in rows:
        if row.is_uploading and row.claimed_at is not None and now - row.claimed_at >= LONGEST_CLAIM:
            yield LockedOut(row.workspace_id, f"It has been claimed for ARCHIVING since {row.claimed_at}.")


class Watcher:
    """Checks every few hundred milliseconds until the game ends; an outage costs one check."""

    def __init__(self, stage: Stage, findings: Findings) -> None:
        self._stage = stage
        self._findings = findings
        policy = policy_of(stage.settings)
        self._limits = policy.limits
        self._archives = ArchiveWatch(policy.graces)
        self._outages = OutageWatch()
        self.polls = 0
        self.missed = 0
        self.phases: Counter[str] = Counter()

    async def run(self, until: asyncio.Event) -> None:
        async with S3Archives.open(self._stage.store) as archives:
            while not until.is_set():
                try:
                    async with asyncio.timeout(TIMEOUT_SECONDS):
                        await self._check(archives)
                    self.polls += 1
                except OUTAGES:
                    self.missed += 1
                await asyncio.sleep(POLL_SECONDS)

    async def _check(self, archives: S3Archives) -> None:
        rows = await read_rows(self._stage.database)
        self.phases = Counter(row.phase for row in rows if not row.deleted)
        self._findings.record(Invariant.LIMITS, check_limits(rows, self._limits))
        self._check_locked_out(rows)
        await self._check_instances()
        if self.polls % POLLS_PER_LISTING == 0:
            await self._check_archives(archives, rows)

    def _check_locked_out(self, rows: list[Row]) -> None:
        now, stage = datetime.now(UTC), self._stage
        s3_is_down = isinstance(stage.s3.mode, Down) and stage.fault_pause.is_active
        self._findings.record(Invariant.NOT_LOCKED_OUT, (), checks=s3_is_down)
        if self._outages.update(now, only_s3_is_down=s3_is_down and not stage.unavailable()):
            for found in find_locked_out(rows, now):
                self._findings.record(Invariant.NOT_LOCKED_OUT, [found.words], found.workspace_id, checks=0)

    async def _check_instances(self) -> None:
        found = await self._stage.all_instances()
        if any(len(names) > 1 for names in found.values()):
            await asyncio.sleep(RECHECK_SECONDS)
            again = await self._stage.all_instances()
            found = {each: [*set(names) & set(again.get(each, ()))] for each, names in found.items()}
        for workspace_id, names in found.items():
            problems = [f"It has {len(names)} instances: {', '.join(sorted(names))}."] * (len(names) > 1)
            self._findings.record(Invariant.ONE_INSTANCE, problems, workspace_id)

    async def _check_archives(self, archives: S3Archives, rows: list[Row]) -> None:
        committed = find_committed(await list_objects(archives))
        for missing in list(self._archives.check(rows, committed, datetime.now(UTC))):
            # Ask for the object itself: a store that has just started may not list everything yet.
            if await archives.observe(missing.key) is ArchiveFact.ABSENT:
                self._record_missing(missing)
        self._findings.record(Invariant.ARCHIVE_KEPT, (), checks=len(committed))

    def _record_missing(self, missing: MissingArchive) -> None:
        self._findings.record(Invariant.ARCHIVE_KEPT, [missing.words], missing.workspace_id, checks=0)
