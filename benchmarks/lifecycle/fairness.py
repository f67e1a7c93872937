"""`python -m benchmarks.lifecycle.fairness`: a start alone, and while 200 archives of another user wait."""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import func, or_, select

from benchmarks.command_line import run_command
from benchmarks.lifecycle.phase_waiter import PhaseWaiter, open_waiter
from benchmarks.report import MEGABYTE, Cell, Report, Section, milliseconds, percentile, verdict
from benchmarks.servers import real_deployment, run_worker
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
    """The number of waiting archives and of measured starts."""

    archives: int
    rounds: int


FULL = Size(200, 20)
QUICK = Size(40, 5)


@dataclass
class Starts:
    """One user's workspace, which is started and stopped repeatedly."""

    waiter: PhaseWaiter
    workspace_id: WorkspaceId

    async def run(self, rounds: int) -> list[float]:
        """Return the seconds of each start."""
        return [await self._round() for _ in range(rounds)]

    async def _round(self) -> float:
        began = time.perf_counter()
        await self._go(DesiredState.RUNNING)
        seconds = time.perf_counter() - began
        await self._go(DesiredState.STANDBY)
        return seconds

    async def _go(self, desired: DesiredState) -> None:
        deployment = self.waiter.deployment
        await deployment.want(self.workspace_id, desired)
        await deployment.wake(self.workspace_id)
        await self.waiter.wait_for(self.workspace_id, Phase(desired.value))
        # The workflow ends after the row has settled; the next round must not overlap it.
        await deployment.client.get_workflow_handle(workspace_workflow_id(self.workspace_id)).result()


async def run(size: Size, parts: Sequence[str], report: Report) -> None:
    del parts
    async with real_deployment() as deployment, run_worker(deployment), open_waiter(deployment) as waiter:
        workspace_id = await deployment.create(DesiredState.STANDBY)
        await deployment.wake(workspace_id)
        await waiter.wait_for(workspace_id, Phase.STANDBY)
        starts = Starts(waiter, workspace_id)
        await starts.run(WARM_UP)
        report.log(f"{size.rounds} starts alone")
        alone = await starts.run(size.rounds)
        report.log(f"{size.archives} archives of another user")
        await _queue_archives(await _as_another_user(deployment), size.archives)
        waiting = [await _count_archives(deployment)]
        during = await starts.run(size.rounds)
        waiting.append(await _count_archives(deployment))
    report.add(_compare(alone, during, waiting))


async def _as_another_user(deployment: Deployment) -> Deployment:
    async with deployment.database.transaction() as session:
        return replace(deployment, owner=await add_user(session))


async def _queue_archives(deployment: Deployment, count: int) -> None:
    """Return when all of them are running or waiting."""
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

    started = or_(Workspace.operation == Operation.ARCHIVING, Workspace.phase == Phase.ARCHIVED)
    counted = select(func.count()).where(Workspace.owner_user_id == deployment.owner, started)

    async def all_started() -> bool:
        async with deployment.database.transaction() as session:
            return await session.scalar(counted) == count

    await asyncio.gather(*(archive() for _ in range(count)))
    await until(all_started, "all archives run or wait")


async def _count_archives(deployment: Deployment) -> int:
    async with deployment.database.transaction() as session:
        return await count_unfinished(session, DesiredState.ARCHIVED)


def _compare(alone: list[float], during: list[float], waiting: Sequence[int]) -> Section:
    rows: list[Sequence[Cell]] = [
        (name, *(milliseconds(percentile(seconds, percent)) for percent in (50, 90)))
        for name, seconds in (("alone", alone), ("with archives waiting", during))
    ]
    ratio = percentile(during, 50) / percentile(alone, 50)
    first, last = waiting
    remarks = [
        f"archives running or waiting: {first} at the first of these starts, {last} after the last",
        f"{ratio:.2f} x its time alone (goal: below {GOAL_RATIO}): {verdict(ratio < GOAL_RATIO)}",
    ]
    return Section("Start, ms", ("", "p50", "p90"), rows, remarks)


if __name__ == "__main__":
    run_command("benchmarks.lifecycle.fairness", __doc__, PARTS, (FULL, QUICK), run)
