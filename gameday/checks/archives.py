"""Archives: what something needs stays, what nothing needs goes, each in its time."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from codehub.adapters.s3.archives import S3Archives
from codehub.bootstrap import policy_of
from codehub.domain.failures import Failure
from codehub.domain.garbage import ArchiveOwner, GracePeriods, is_protected
from codehub.domain.naming import META_SUFFIX, parse_archive_key
from codehub.domain.states import Phase
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows
from gameday.stage.stage import Stage

# The collector's clock is that of its round, which may have begun a while before it looked; a collector that
# knows no grace at all removes within a third of it.
SURELY_WITHIN_GRACE = 0.6


@dataclass(frozen=True)
class Loss:
    """An archive that is not there although it should be."""

    workspace_id: str
    key: str
    words: str


@dataclass
class ArchiveWatch:
    """Follows every archive from look to look."""

    graces: GracePeriods
    _needed_at: dict[str, datetime] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def look(self, rows: Iterable[Row], committed: Set[str], now: datetime) -> Iterator[Loss]:
        """The rows must have been read before the listing: a key is stored after its archive."""
        owners = {str(row.workspace_id): row.owner_of_archives for row in rows}
        yield from self._missing(owners, committed, now)
        # An error protects every archive while it lasts. One that is over starts no grace anew: between
        # two rounds of the collector, nobody has seen it.
        calm = {workspace_id: _without_error(owner) for workspace_id, owner in owners.items()}
        for key in self._known - committed:
            since = now - self._needed_at.get(key, now - self.graces.orphan)
            if since < SURELY_WITHIN_GRACE * self.graces.orphan:
                seconds = since.total_seconds()
                yield _loss(key, f"The archive {key} was removed {seconds:.1f} s after something needed it.")
        self._known = set(committed)
        for key in committed:
            if is_needed(key, calm, now, self.graces):
                self._needed_at[key] = now

    def _missing(
        self, owners: Mapping[str, ArchiveOwner], committed: Set[str], now: datetime
    ) -> Iterator[Loss]:
        for workspace_id, owner in owners.items():
            key = owner.archive_key
            if key is not None and key not in committed and is_needed(key, owners, now, self.graces):
                yield Loss(workspace_id, key, f"Its archive {key} is not in the store.")


def _without_error(owner: ArchiveOwner) -> ArchiveOwner:
    phase = Phase.ARCHIVED if owner.phase is Phase.ERROR else owner.phase
    return replace(owner, phase=phase, error_reason=None)


def _loss(key: str, words: str) -> Loss:
    name = parse_archive_key(key)
    return Loss(name.workspace_id if name else "", key, words)


def is_needed(key: str, owners: Mapping[str, ArchiveOwner], now: datetime, graces: GracePeriods) -> bool:
    name = parse_archive_key(key)
    return name is not None and is_protected(key, name, owners.get(name.workspace_id), now, graces)


def committed_of(objects: Set[str]) -> set[str]:
    """Archives whose meta is there too."""
    return {key for key in objects if not key.endswith(META_SUFFIX) and key + META_SUFFIX in objects}


def unneeded_of(objects: Set[str], rows: Iterable[Row], now: datetime, graces: GracePeriods) -> set[str]:
    """Archives, whole or in part, that nothing needs."""
    owners = {str(row.workspace_id): row.owner_of_archives for row in rows}
    keys = {each.removesuffix(META_SUFFIX) for each in objects}
    return {key for key in keys if not is_needed(key, owners, now, graces)}


async def list_objects(archives: S3Archives) -> set[str]:
    return {each.key async for each in archives.list_all()}


POLL_SECONDS = 2.0
# One until an archive is seen as an orphan, one that removes it after its grace; and two to spare.
ROUNDS = 4


async def check_garbage(stage: Stage, findings: Findings) -> int:
    """Wait for the collector; tell how many uploads were left for it to abort one day."""
    grace, period = stage.settings.gc.grace_seconds, stage.settings.sweeps.gc_seconds
    deadline = time.monotonic() + grace + ROUNDS * period
    async with S3Archives.open(stage.store) as archives:
        left = await _unneeded(stage, archives)
        findings.note(Invariant.NO_GARBAGE, (), checks=1 + len(left))
        while left and time.monotonic() < deadline:
            await asyncio.sleep(POLL_SECONDS)
            left &= await _unneeded(stage, archives)
        findings.note(
            Invariant.NO_GARBAGE,
            [f"Nothing needs {key}, but it is still there after {grace:.0f} s of grace." for key in left],
            checks=0,
        )
        return await _abort_uploads(archives, findings)


async def _unneeded(stage: Stage, archives: S3Archives) -> set[str]:
    objects = await list_objects(archives)
    rows = await read_rows(stage.database)
    return unneeded_of(objects, rows, datetime.now(UTC), policy_of(stage.settings).graces)


async def _abort_uploads(archives: S3Archives, findings: Findings) -> int:
    """The collector gives an upload two days; with the clock moved on, its own rule must leave none."""
    one_day = datetime.now(UTC) + timedelta(days=1)
    try:
        aborted = await archives.abort_stale_uploads(one_day)
        left = await archives.abort_stale_uploads(one_day)
    except Failure as failure:
        findings.note(Invariant.NO_GARBAGE, [f"Uploads cannot be aborted: {failure.message}"])
        return 0
    problems = [f"{left} unfinished uploads are left after all have been aborted."] if left else []
    findings.note(Invariant.NO_GARBAGE, problems)
    return aborted
