"""Archives: the ones that are needed stay, and the others are collected in time."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from codehub.adapters.s3.archives import S3Archives
from codehub.domain.failures import Failure
from codehub.domain.garbage import ArchiveOwner, GracePeriods, is_protected
from codehub.domain.naming import META_SUFFIX, parse_archive_key
from codehub.domain.states import Phase
from codehub.policy import policy_of
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows
from gameday.stage.stage import Stage

# The collector uses the time at which its sweep began, which may be a while before it listed the archives. A
# collector without any grace period removes an archive within a third of it.
SURELY_WITHIN_GRACE = 0.6
POLL_SECONDS = 2.0
# One sweep records an archive as an orphan, one removes it after the grace period; two more as a margin.
COLLECTOR_SWEEPS = 4


@dataclass(frozen=True)
class MissingArchive:
    """An archive that should exist but does not."""

    workspace_id: str
    key: str
    words: str


@dataclass
class ArchiveWatch:
    """Compares consecutive listings of the archives."""

    graces: GracePeriods
    _needed_at: dict[str, datetime] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def check(self, rows: Iterable[Row], committed: Set[str], now: datetime) -> Iterator[MissingArchive]:
        """Find missing archives. Read the rows before the listing: a key is stored after its archive."""
        owners = {str(row.workspace_id): row.archive_owner for row in rows}
        yield from self._find_missing(owners, committed, now)
        # An error protects every archive while it lasts. It does not restart the grace period when it ends,
        # because the collector may not have noticed it between two sweeps.
        without_errors = {workspace_id: _without_error(owner) for workspace_id, owner in owners.items()}
        for key in self._known - committed:
            since = now - self._needed_at.get(key, now - self.graces.orphan)
            if since < SURELY_WITHIN_GRACE * self.graces.orphan:
                seconds = since.total_seconds()
                yield _missing(key, f"The archive {key} was removed {seconds:.1f} s after it was needed.")
        self._known = set(committed)
        for key in committed:
            if is_needed(key, without_errors, now, self.graces):
                self._needed_at[key] = now

    def _find_missing(
        self, owners: Mapping[str, ArchiveOwner], committed: Set[str], now: datetime
    ) -> Iterator[MissingArchive]:
        for workspace_id, owner in owners.items():
            key = owner.archive_key
            if key is not None and key not in committed and is_needed(key, owners, now, self.graces):
                yield MissingArchive(workspace_id, key, f"Its archive {key} is not in the store.")


def _without_error(owner: ArchiveOwner) -> ArchiveOwner:
    phase = Phase.ARCHIVED if owner.phase is Phase.ERROR else owner.phase
    return replace(owner, phase=phase, error_reason=None)


def _missing(key: str, words: str) -> MissingArchive:
    name = parse_archive_key(key)
    return MissingArchive(name.workspace_id if name else "", key, words)


def is_needed(key: str, owners: Mapping[str, ArchiveOwner], now: datetime, graces: GracePeriods) -> bool:
    name = parse_archive_key(key)
    return name is not None and is_protected(key, name, owners.get(name.workspace_id), now, graces)


def find_committed(objects: Set[str]) -> set[str]:
    """Return the archives that have their `.meta` object too."""
    return {key for key in objects if not key.endswith(META_SUFFIX) and key + META_SUFFIX in objects}


def find_unneeded(objects: Set[str], rows: Iterable[Row], now: datetime, graces: GracePeriods) -> set[str]:
    """Return the archives, complete or not, that nothing needs."""
    owners = {str(row.workspace_id): row.archive_owner for row in rows}
    keys = {each.removesuffix(META_SUFFIX) for each in objects}
    return {key for key in keys if not is_needed(key, owners, now, graces)}


async def list_objects(archives: S3Archives) -> set[str]:
    return {each.key async for each in archives.list_all()}


async def check_garbage(stage: Stage, findings: Findings) -> int:
    """Wait until the collector has removed the archives that nothing needs.

    Return the number of unfinished uploads that were left for it.
    """
    grace, period = stage.settings.gc.grace_seconds, stage.settings.sweeps.gc_seconds
    deadline = time.monotonic() + grace + COLLECTOR_SWEEPS * period
    async with S3Archives.open(stage.store) as archives:
        left = await _list_unneeded(stage, archives)
        findings.record(Invariant.NO_GARBAGE, (), checks=1 + len(left))
        while left and time.monotonic() < deadline:
            await asyncio.sleep(POLL_SECONDS)
            left &= await _list_unneeded(stage, archives)
        findings.record(
            Invariant.NO_GARBAGE,
            [f"Nothing needs {key}, but it still exists after {grace:.0f} s of grace." for key in left],
            checks=0,
        )
        return await _abort_uploads(archives, findings)


async def _list_unneeded(stage: Stage, archives: S3Archives) -> set[str]:
    objects = await list_objects(archives)
    rows = await read_rows(stage.database)
    return find_unneeded(objects, rows, datetime.now(UTC), policy_of(stage.settings).graces)


async def _abort_uploads(archives: S3Archives, findings: Findings) -> int:
    """Abort uploads as the collector does after two days, with the clock moved on; none may be left."""
    one_day = datetime.now(UTC) + timedelta(days=1)
    try:
        aborted = await archives.abort_stale_uploads(one_day)
        left = await archives.abort_stale_uploads(one_day)
    except Failure as failure:
        findings.record(Invariant.NO_GARBAGE, [f"Uploads cannot be aborted: {failure.message}"])
        return 0
    problems = [f"{left} unfinished uploads are left after all were aborted."] if left else []
    findings.record(Invariant.NO_GARBAGE, problems)
    return aborted
