"""The sweep: one listing per provider, compared with what the rows say; only what differs is woken."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from temporalio import activity

from activities.heartbeat import heartbeats
from codehub.contracts import ObserveResult
from codehub.db.drift import Expected, load_all_with_homes, load_expected
from codehub.db.progress import not_converged
from codehub.db.session import Database
from codehub.db.usage import load_owner_ids
from codehub.domain.conditions import ContainerFact, Reason, WorkspaceId
from codehub.domain.failures import Failure
from codehub.ports import Convergence, Instances, Volumes

BATCH = 1000
# A sweep looks only at what changed in the listings since the one before; every so often it looks at all.
FULL_CHECK_EVERY = 20

REASON_OF = {ContainerFact.READY: Reason.READY, ContainerFact.NOT_READY: Reason.NOT_READY}


@dataclass(frozen=True)
class Listing:
    """What the providers listed; a workspace that is in neither has neither."""

    containers: Mapping[WorkspaceId, ContainerFact]
    volumes: frozenset[WorkspaceId]

    def of(self, workspace_id: WorkspaceId) -> tuple[str, bool]:
        fact = self.containers.get(workspace_id)
        return REASON_OF[fact] if fact else Reason.ABSENT, workspace_id in self.volumes

    def ids(self) -> set[WorkspaceId]:
        return set(self.volumes) | self.containers.keys()


@dataclass
class DriftActivities:
    """The observer. Its memory of the last listing only saves work: a new worker starts with a full check."""

    database: Database
    instances: Instances
    volumes: Volumes
    convergence: Convergence
    _last: Listing | None = field(default=None, init=False)
    _sweeps: int = field(default=0, init=False)

    @activity.defn
    async def wake_what_drifted(self) -> ObserveResult:
        """Wake what differs from its row, and what has not converged; a wake that was lost is sent again."""
        async with heartbeats("observe"):
            drifted = await self._find_drift()
            async with self.database.transaction() as session:
                waiting = await load_owner_ids(session, await not_converged(session, BATCH))
            for workspace_id, owner_id in (drifted | waiting).items():
                await self.convergence.wake(workspace_id, owner_id)
        return ObserveResult(drifted=len(drifted), not_converged=len(waiting))

    async def _find_drift(self) -> dict[WorkspaceId, str]:
        try:
            now = Listing(await self.instances.list_all(), frozenset(await self.volumes.list_all()))
        except Failure as failure:
            # Silence is not absence: without a listing there is nothing to compare.
            activity.logger.warning("no listing this time: %s", failure)
            return {}
        last, self._last = self._last, now
        self._sweeps += 1
        full = last is None or self._sweeps % FULL_CHECK_EVERY == 0
        changed = now.ids() if full or last is None else _changed(last, now)
        return {
            each.workspace_id: each.owner_id
            for each in await self._expected(changed, full=full)
            if _differs(each, now)
        }

    async def _expected(self, changed: Collection[WorkspaceId], *, full: bool) -> list[Expected]:
        async with self.database.transaction() as session:
            expected = await load_expected(session, changed) if changed else []
            return expected + await load_all_with_homes(session) if full else expected


def _changed(last: Listing, now: Listing) -> set[WorkspaceId]:
    return {each for each in last.ids() | now.ids() if last.of(each) != now.of(each)}


def _differs(expected: Expected, now: Listing) -> bool:
    """While an operation runs, its own workflow is looking."""
    seen = now.of(expected.workspace_id)
    return not expected.busy and seen != (expected.container, expected.volume_exists)
