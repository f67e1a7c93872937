"""`python -m benchmarks.lifecycle.fairness`: a start alone, and while 200 archives of somebody else wait."""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import func, or_, select

from benchmarks.command import run_command
from benchmarks.lifecycle.arrivals import Arrivals, listening
from benchmarks.report import MEGABYTE, Cell, Report, Section, milliseconds, percentile, verdict
from benchmarks.servers import real_site, worker_of
from codehub.adapters.local.volumes import LocalVolumes
from codehub.contracts import workspace_workflow_id
from codehub.db.convergence import count_unfinished
from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.providers import local_root_of
from tests.chaos.harness import Site
from tests.rows import add_user
from tests.waiting import until

PARTS = ("starts",)
GOAL_RATIO = 1.5
WARM_UP = 2
REQUESTS_AT_ONCE = 10
HOME_BYTES = 8 * MEGABYTE


@dataclass(frozen=True)
class Size:
    """How many archives wait, and how often a start is measured."""

    archives: int
    rounds: int


FULL = Size(200, 20)
QUICK = Size(40, 5)


@dataclass
class Starts:
    """One person's workspace, started and stopped again and again."""

    arrivals: Arrivals
    workspace_id: WorkspaceId

    async def run(self, rounds: int) -> list[float]:
        """The seconds of each start."""
        return [await self._round() for _ in range(rounds)]

    async def _round(self) -> float:
        began = time.perf_counter()
        await self._go(DesiredState.RUNNING)
        seconds = time.perf_counter() - began
        await self._go(DesiredState.STANDBY)
        return seconds

    async def _go(self, desired: DesiredState) -> None:
        site = self.arrivals.site
        await site.want(self.workspace_id, desired)
        await site.wake(self.workspace_id)
        await self.arrivals.wait_for(self.workspace_id, Phase(desired.value))
        # The run's own end comes after the row has settled; the next round shall not overlap it.
        await site.client.get_workflow_handle(workspace_workflow_id(self.workspace_id)).result()


async def run(size: Size, parts: Sequence[str], report: Report) -> None:
    del parts
    async with real_site() as site, worker_of(site), listening(site) as arrivals:
        workspace_id = await site.create(DesiredState.STANDBY)
        await site.wake(workspace_id)
        await arrivals.wait_for(workspace_id, Phase.STANDBY)
        starts = Starts(arrivals, workspace_id)
        await starts.run(WARM_UP)
        report.say(f"{size.rounds} starts alone")
        alone = await starts.run(size.rounds)
        report.say(f"{size.archives} archives of somebody else")
        await _queue_archives(await _somebody_else(site), size.archives)
        waiting = [await _archiving(site)]
        beside = await starts.run(size.rounds)
        waiting.append(await _archiving(site))
    report.add(_compare(alone, beside, waiting))


async def _somebody_else(site: Site) -> Site:
    async with site.database.transaction() as session:
        return replace(site, owner=await add_user(session))


async def _queue_archives(site: Site, count: int) -> None:
    """Return once all of them are under way or wait."""
    volumes, slots = LocalVolumes(local_root_of(site.settings)), asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def archive() -> None:
        async with slots:
            workspace_id = await site.create(DesiredState.ARCHIVED)
            await volumes.provision(workspace_id)
            # Random bytes do not compress.
            await asyncio.to_thread((site.home(workspace_id) / "ballast").write_bytes, os.urandom(HOME_BYTES))
            await site.wake(workspace_id)

    begun = or_(Workspace.operation == Operation.ARCHIVING, Workspace.phase == Phase.ARCHIVED)
    counted = select(func.count()).where(Workspace.owner_user_id == site.owner, begun)

    async def all_begun() -> bool:
        async with site.database.transaction() as session:
            return await session.scalar(counted) == count

    await asyncio.gather(*(archive() for _ in range(count)))
    await until(all_begun, "the archives wait")


async def _archiving(site: Site) -> int:
    async with site.database.transaction() as session:
        return await count_unfinished(session, DesiredState.ARCHIVED)


def _compare(alone: list[float], beside: list[float], waiting: Sequence[int]) -> Section:
    rows: list[Sequence[Cell]] = [
        (name, *(milliseconds(percentile(seconds, percent)) for percent in (50, 90)))
        for name, seconds in (("alone", alone), ("beside the archives", beside))
    ]
    ratio = percentile(beside, 50) / percentile(alone, 50)
    first, last = waiting
    remarks = [
        f"archives under way or waiting: {first} at the first of these starts, {last} after the last",
        f"{ratio:.2f} x its time alone (goal: below {GOAL_RATIO}): {verdict(ratio < GOAL_RATIO)}",
    ]
    return Section("Start, ms", ("", "p50", "p90"), rows, remarks)


if __name__ == "__main__":
    run_command("benchmarks.lifecycle.fairness", __doc__, PARTS, (FULL, QUICK), run)
