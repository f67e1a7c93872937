"""The sweep: one listing per provider, compared with what the rows say; only what differs is woken."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from temporalio import activity

from activities.step_monitor import heartbeats
from codehub.contracts import ObserveResult
from codehub.db.session import Database
from codehub.db.sweeps import Expected, Unconverged, load_all_with_homes, load_expected, not_converged
from codehub.domain.conditions import Conditions, ContainerFact, Resource, WorkspaceId
from codehub.domain.failures import Failure
from codehub.domain.judge import judge_instance
from codehub.ports import Archives, Convergence, Instances, Outdated, Volumes

BATCH = 1000
# A sweep looks only at what changed in the listings since the one before; every so often it looks at all.
FULL_CHECK_EVERY = 20


@dataclass(frozen=True)
class Listing:
    """What the providers listed; a workspace that is in neither has neither."""

    containers: Mapping[WorkspaceId, ContainerFact]
    volumes: frozenset[WorkspaceId]

    def of(self, workspace_id: WorkspaceId) -> tuple[ContainerFact, bool]:
        return self.containers.get(workspace_id, ContainerFact.ABSENT), workspace_id in self.volumes

    def ids(self) -> set[WorkspaceId]:
        return set(self.volumes) | self.containers.keys()

    def unhealthy(self) -> set[WorkspaceId]:
        return {each for each, fact in self.containers.items() if fact is ContainerFact.UNHEALTHY}


@dataclass
class DriftActivities:
    """The observer. Its memory of the last listing only saves work: a new worker starts with a full check."""

    database: Database
    instances: Instances
    volumes: Volumes
    archives: Archives
    convergence: Convergence
    _last: Listing | None = field(default=None, init=False)
    _sweeps: int = field(default=0, init=False)

    @activity.defn
    async def wake_what_drifted(self) -> ObserveResult:
        """Wake what differs from its row, and what has not converged; a wake that was lost is sent again."""
        async with heartbeats("observe"):
            containers, volumes = await self._list_instances(), await self._list_volumes()
            drifted: dict[WorkspaceId, str] = {}
            # Silence is not absence: without a listing there is nothing to compare.
            if containers is not None and volumes is not None:
                drifted = await self._find_drift(Listing(containers, volumes))
            answers = {
                Resource.CONTAINER: containers is not None,
                Resource.VOLUME: volumes is not None,
                Resource.ARCHIVE: await self._archives_answer(),
            }
            unfinished = await self._find_unfinished([each for each, does in answers.items() if not does])
            for workspace_id, owner_id in drifted.items():
                await self.convergence.wake(workspace_id, owner_id)
            for each in unfinished:
                # A signal to a run that is busy anyway would only make its history longer.
                send = self.convergence.resume if each.busy else self.convergence.wake
                await send(each.workspace_id, each.owner_id)
        return ObserveResult(drifted=len(drifted), not_converged=len(unfinished))

    async def _list_instances(self) -> Mapping[WorkspaceId, ContainerFact] | None:
        """Return None if the provider does not answer."""
        try:
            return await self.instances.list_all()
        except Failure as failure:
            activity.logger.warning("no listing of instances this time: %s", failure)
            return None

    async def _list_volumes(self) -> frozenset[WorkspaceId] | None:
        """Return None if the provider does not answer."""
        try:
            return frozenset(await self.volumes.list_all())
        except Failure as failure:
            activity.logger.warning("no listing of volumes this time: %s", failure)
            return None

    async def _find_unfinished(self, silent: Collection[Resource]) -> list[Unconverged]:
        """What has something left to do, and whose providers answer: the others would only look in vain."""
        async with self.database.transaction() as session:
            return await not_converged(session, BATCH, silent=silent, now=datetime.now(UTC))

    async def _archives_answer(self) -> bool:
        try:
            await self.archives.observe(None)
        except Failure as failure:
            activity.logger.warning("the archive store does not answer: %s", failure)
            return False
        return True

    async def _find_drift(self, now: Listing) -> dict[WorkspaceId, str]:
        last, self._last = self._last, now
        self._sweeps += 1
        full = last is None or self._sweeps % FULL_CHECK_EVERY == 0
        # One that does not answer is looked at every time: what follows depends on how long it has not.
        changed = now.ids() if full or last is None else _changed(last, now) | now.unhealthy()
        outdated = await self._find_outdated() if full else None
        moment = datetime.now(UTC)
        return {
            each.workspace_id: each.owner_id
            for each in await self._expected(changed, full=full)
            if _differs(each, now, outdated, moment)
        }

    async def _find_outdated(self) -> Outdated | None:
        try:
            return await self.instances.find_outdated()
        except Failure as failure:
            activity.logger.warning("configurations were not compared this time: %s", failure)
            return None

    async def _expected(self, changed: Collection[WorkspaceId], *, full: bool) -> list[Expected]:
        async with self.database.transaction() as session:
            expected = await load_expected(session, changed) if changed else []
            return expected + await load_all_with_homes(session) if full else expected


def _changed(last: Listing, now: Listing) -> set[WorkspaceId]:
    return {each for each in last.ids() | now.ids() if last.of(each) != now.of(each)}


def _differs(expected: Expected, now: Listing, outdated: Outdated | None, moment: datetime) -> bool:
    """Whether a look would change what is known. While an operation runs, its own workflow is looking."""
    if expected.busy:
        return False
    before, (fact, volume_exists) = expected.conditions, now.of(expected.workspace_id)
    changes = None if outdated is None else outdated.get(expected.workspace_id, ())
    after = judge_instance(before, fact, changes, moment)
    return volume_exists != before.volume_exists or _summary(after) != _summary(before)


def _summary(conditions: Conditions) -> tuple[str, ...]:
    """What is worth a wake; times and wording are not."""
    ready, answers = conditions.container_ready.reason, conditions.container_answers.status
    return ready, answers, conditions.restart_to_apply or ""
