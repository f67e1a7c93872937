"""The observe sweep: compares one listing per provider with the rows and wakes what differs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from temporalio import activity

from activities.step_monitor import heartbeats
from codehub.contracts import ObserveResult
from codehub.db.session import Database
from codehub.db.sweeps import (
    LastObserved,
    Unconverged,
    load_all_with_homes,
    load_last_observed,
    not_converged,
)
from codehub.domain.conditions import Conditions, ContainerFact, Resource, WorkspaceId
from codehub.domain.failures import Failure
from codehub.domain.judge import judge_instance
from codehub.ports import Archives, Convergence, Instances, Outdated, StorageJobs, Volumes

BATCH = 1000
# A sweep checks only what changed since the previous listing; every 20th sweep checks everything.
FULL_CHECK_EVERY = 20


@dataclass(frozen=True)
class Listing:
    """The listings of the providers. A workspace that is in neither has no container and no volume."""

    containers: Mapping[WorkspaceId, ContainerFact]
    volumes: frozenset[WorkspaceId]

    def get(self, workspace_id: WorkspaceId) -> tuple[ContainerFact, bool]:
        return self.containers.get(workspace_id, ContainerFact.ABSENT), workspace_id in self.volumes

    def ids(self) -> set[WorkspaceId]:
        return set(self.volumes) | self.containers.keys()

    def unhealthy(self) -> set[WorkspaceId]:
        return {each for each, fact in self.containers.items() if fact is ContainerFact.UNHEALTHY}


@dataclass
class DriftActivities:
    """Finds drift. It remembers the last listing to save work; a new worker starts with a full check."""

    database: Database
    instances: Instances
    volumes: Volumes
    archives: Archives
    jobs: StorageJobs
    convergence: Convergence
    _last: Listing | None = field(default=None, init=False)
    _sweeps: int = field(default=0, init=False)

    @activity.defn
    async def wake_what_drifted(self) -> ObserveResult:
        """Wake workspaces that differ from their row or have not converged; this repeats lost wakes."""
        async with heartbeats("observe"):
            self._sweeps += 1
            full = self._last is None or self._sweeps % FULL_CHECK_EVERY == 0
            containers, volumes = await self._list_instances(), await self._list_volumes()
            drifted: dict[WorkspaceId, str] = {}
            # An outage must not look like missing data: without both listings, compare nothing.
            if containers is not None and volumes is not None:
                drifted = await self._find_drift(Listing(containers, volumes), full=full)
            responds = {
                Resource.CONTAINER: containers is not None,
                Resource.VOLUME: volumes is not None,
                Resource.ARCHIVE: await self._archives_respond(),
            }
            unconverged = await self._find_unconverged([each for each, ok in responds.items() if not ok])
            for workspace_id, owner_id in drifted.items():
                await self.convergence.wake(workspace_id, owner_id)
            for each in unconverged:
                # A signal would only lengthen the history of a busy run.
                send = self.convergence.resume if each.busy else self.convergence.wake
                await send(each.workspace_id, each.owner_id)
            if full:
                await self._remove_abandoned_jobs()
        return ObserveResult(drifted=len(drifted), not_converged=len(unconverged))

    async def _list_instances(self) -> Mapping[WorkspaceId, ContainerFact] | None:
        """Return None if the provider does not respond."""
        try:
            return await self.instances.list_all()
        except Failure as failure:
            activity.logger.warning("cannot list instances: %s", failure)
            return None

    async def _list_volumes(self) -> frozenset[WorkspaceId] | None:
        """Return None if the provider does not respond."""
        try:
            return frozenset(await self.volumes.list_all())
        except Failure as failure:
            activity.logger.warning("cannot list volumes: %s", failure)
            return None

    async def _find_unconverged(self, silent: Collection[Resource]) -> list[Unconverged]:
        """Return workspaces that have not converged, without those that wait for a provider that is down."""
        async with self.database.transaction() as session:
            return await not_converged(session, BATCH, silent=silent, now=datetime.now(UTC))

    async def _archives_respond(self) -> bool:
        try:
            await self.archives.observe(None)
        except Failure as failure:
            activity.logger.warning("the archive store does not respond: %s", failure)
            return False
        return True

    async def _remove_abandoned_jobs(self) -> None:
        try:
            removed = await self.jobs.remove_abandoned()
        except Failure as failure:
            activity.logger.warning("cannot remove abandoned storage jobs: %s", failure)
        else:
            if removed:
                activity.logger.info("removed %d storage jobs whose caller has died", removed)

    async def _find_drift(self, now: Listing, *, full: bool) -> dict[WorkspaceId, str]:
        last, self._last = self._last, now
        # Check an unhealthy one every time, because the outcome depends on how long it has been so.
        changed = now.ids() if full or last is None else _changed(last, now) | now.unhealthy()
        outdated = await self._find_outdated() if full else None
        moment = datetime.now(UTC)
        return {
            each.workspace_id: each.owner_id
            for each in await self._last_observed(changed, full=full)
            if _differs(each, now, outdated, moment)
        }

    async def _find_outdated(self) -> Outdated | None:
        try:
            return await self.instances.find_outdated()
        except Failure as failure:
            activity.logger.warning("cannot compare configurations: %s", failure)
            return None

    async def _last_observed(self, changed: Collection[WorkspaceId], *, full: bool) -> list[LastObserved]:
        async with self.database.transaction() as session:
            expected = await load_last_observed(session, changed) if changed else []
            return expected + await load_all_with_homes(session) if full else expected


def _changed(last: Listing, now: Listing) -> set[WorkspaceId]:
    return {each for each in last.ids() | now.ids() if last.get(each) != now.get(each)}


def _differs(expected: LastObserved, now: Listing, outdated: Outdated | None, moment: datetime) -> bool:
    """Return whether an observation would change the row. A busy workspace is observed by its workflow."""
    if expected.busy:
        return False
    before, (fact, volume_exists) = expected.conditions, now.get(expected.workspace_id)
    changes = None if outdated is None else outdated.get(expected.workspace_id, ())
    after = judge_instance(before, fact, changes, moment)
    return volume_exists != before.volume_exists or _summary(after) != _summary(before)


def _summary(conditions: Conditions) -> tuple[str, ...]:
    """Return the parts that are worth a wake, without times and messages."""
    ready, responds = conditions.container_ready.reason, conditions.container_answers.status
    return ready, responds, conditions.restart_to_apply or ""
