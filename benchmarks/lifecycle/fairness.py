"""`python -m benchmarks.lifecycle.fairness`: a start alone, and while 200 archives of somebody else wait."""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import func, or_, select

from benchmarks.command_line import run_command
from benchmarks.lifecycle.phase_waiter import Arrivals, listening
from benchmarks.report import MEGABYTE, Cell, Report, Section, milliseconds, percentile, verdict
from benchmarks.servers import real_deployment, worker_of
from codehub.adapters.local.volumes import LocalVolumes
from codehub.contracts import workspace_workflow_id
from codehub.db.models import Workspace
from codehub.db.sweeps import count_unfinished
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.providers import local_root_of
from testkit.deployment import Deployment
from testkit.rows import add_user
from testkit.waiting import until

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
        deployment = self.arrivals.deployment
        await deployment.want(self.workspace_id, desired)
        await deployment.wake(self.workspace_id)
        await self.arrivals.wait_for(self.workspace_id, Phase(desired.value))
        # The run's own end comes after the row has settled; the next round shall not overlap it.
        await deployment.client.get_workflow_handle(workspace_workflow_id(self.workspace_id)).result()


async def run(size: Size, parts: Sequence[str], report: Report) -> None:
    del parts
    async with real_deployment() as deployment, worker_of(deployment), listening(deployment) as arrivals:
        workspace_id = await deployment.create(DesiredState.STANDBY)
        await deployment.wake(workspace_id)
        await arrivals.wait_for(workspace_id, Phase.STANDBY)
        starts = Starts(arrivals, workspace_id)
        await starts.run(WARM_UP)
        report.say(f"{size.rounds} starts alone")
        alone = await starts.run(size.rounds)
        report.say(f"{size.archives} archives of somebody else")
        await _queue_archives(await _somebody_else(deployment), size.archives)
        waiting = [await _archiving(deployment)]
        beside = await starts.run(size.rounds)
        waiting.append(await _archiving(deployment))
    report.add(_compare(alone, beside, waiting))


async def _somebody_else(deployment: Deployment) -> Deployment:
    async with deployment.database.transaction() as session:
        return replace(deployment, owner=await add_user(session))


async def _queue_archives(deployment: Deployment, count: int) -> None:
    """Return once all of them are under way or wait."""
    volumes, slots = LocalVolumes(local_root_of(deployment.settings)), asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def archive() -> None:
        async with slots:
            workspace_id = await deployment.create(DesiredState.ARCHIVED)
            await volumes.provision(workspace_id)
            # Random bytes do not compress.
            await asyncio.to_thread(
                (deployment.home(workspace_id) / "ballast").write_bytes, os.urandom(HOME_BYTES)
            )
            await deployment.wake(workspace_id)

    begun = or_(Workspace.operation == Operation.ARCHIVING, Workspace.phase == Phase.ARCHIVED)
    counted = select(func.count()).where(Workspace.owner_user_id == deployment.owner, begun)

    async def all_begun() -> bool:
        async with deployment.database.transaction() as session:
            return await session.scalar(counted) == count

    await asyncio.gather(*(archive() for _ in range(count)))
    await until(all_begun, "the archives wait")


async def _archiving(deployment: Deployment) -> int:
    async with deployment.database.transaction() as session:
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
