"""The garbage collector: removes archives that nothing needs, after a grace period."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession
from temporalio import activity

from activities.step_monitor import heartbeats
from activities.sweep_time import first_seen_time, sweep_time
from codehub.clock import Clock, utc_now
from codehub.contracts import GcResult, SweepRequest
from codehub.db.archives import (
    Orphan,
    load_owners,
    load_parked_archives,
    mark_collected,
    mark_orphans,
    unmark_orphans,
)
from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.garbage import ArchiveOwner, GracePeriods, is_protected, may_collect
from codehub.domain.naming import META_SUFFIX, ArchiveName, parse_archive_key
from codehub.ports import Archives, Convergence

BATCH = 500
# No live upload takes this long: its job would have stalled before.
STALE_UPLOAD = timedelta(days=2)

Named = tuple[str, ArchiveName]


@dataclass(frozen=True)
class ArchiveListing:
    """All archives in the store, including those without a meta or with only a meta."""

    archives: list[Named]
    committed: frozenset[str]

    def lacks_archive_of(self, owner: ArchiveOwner) -> bool:
        return owner.archive_key is not None and owner.archive_key not in self.committed


@dataclass(frozen=True)
class GarbageActivities:
    """One collection runs at a time, because the schedule does not overlap itself."""

    database: Database
    archives: Archives
    convergence: Convergence
    grace_periods: GracePeriods
    clock: Clock = utc_now

    @activity.defn
    async def collect(self, request: SweepRequest) -> GcResult:
        """List the whole store, then mark and remove. A failed listing skips the cycle."""
        async with heartbeats("collect garbage"):
            listing = await self._list()
            now = sweep_time(request, self.clock)
            batches = [await self._mark(batch, listing, request) for batch in _batches(listing.archives)]
            orphans = [orphan for batch in batches for orphan in batch]
            due = [each for each in orphans if may_collect(each.since, now, self.grace_periods)]
            collected = [await self._collect(orphan, listing, now) for orphan in due]
            return GcResult(
                protected=len(listing.archives) - len(orphans),
                orphans=len(orphans),
                collected=sum(collected),
                aborted_uploads=await self.archives.abort_stale_uploads(now - STALE_UPLOAD),
                vanished=await self._wake_workspaces_without_archive(listing),
            )

    async def _list(self) -> ArchiveListing:
        objects = {each.key async for each in self.archives.list_all()}
        keys = {each.removesuffix(META_SUFFIX) for each in objects}
        return ArchiveListing(
            archives=[(key, name) for key in sorted(keys) if (name := parse_archive_key(key))],
            committed=frozenset(key for key in keys if {key, key + META_SUFFIX} <= objects),
        )

    async def _mark(
        self, archives: Sequence[Named], listing: ArchiveListing, request: SweepRequest
    ) -> list[Orphan]:
        async with self.database.transaction() as session:
            owners = await self._load_owners(session, {name.workspace_id for _, name in archives}, listing)
            now = sweep_time(request, self.clock)
            orphans = [
                key
                for key, name in archives
                if not is_protected(key, name, owners.get(name.workspace_id), now, self.grace_periods)
            ]
            await unmark_orphans(session, {key for key, _ in archives} - set(orphans))
            return await mark_orphans(session, orphans, first_seen_time(request, self.clock))

    async def _collect(self, orphan: Orphan, listing: ArchiveListing, now: datetime) -> bool:
        """Mark the archive under the row's lock, then remove it: an undelete either wins or sees the mark."""
        name = parse_archive_key(orphan.key)
        if name is None:
            return False
        async with self.database.transaction() as session:
            owners = await self._load_owners(session, {name.workspace_id}, listing, for_update=True)
            if is_protected(orphan.key, name, owners.get(name.workspace_id), now, self.grace_periods):
                return False
            await mark_collected(session, orphan.key, now)
        await self.archives.remove(orphan.key)
        return True

    async def _load_owners(
        self,
        session: AsyncSession,
        workspace_ids: Collection[WorkspaceId],
        listing: ArchiveListing,
        *,
        for_update: bool = False,
    ) -> dict[WorkspaceId, ArchiveOwner]:
        owners = await load_owners(session, workspace_ids, for_update=for_update)
        return {
            workspace_id: replace(owner, archive_missing=listing.lacks_archive_of(owner))
            for workspace_id, owner in owners.items()
        }

    async def _wake_workspaces_without_archive(self, listing: ArchiveListing) -> int:
        """Wake workspaces whose archive is not in the listing; their workflows observe for themselves."""
        async with self.database.transaction() as session:
            lost = [each async for each in load_parked_archives(session) if each.key not in listing.committed]
        for each in lost:
            await self.convergence.wake(each.workspace_id, each.owner_id)
        return len(lost)


def _batches(archives: Sequence[Named]) -> Iterator[Sequence[Named]]:
    for start in range(0, len(archives), BATCH):
        yield archives[start : start + BATCH]
