"""Many workspaces at once on providers that do nothing: operations per second of the control plane itself."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import func, select

from benchmarks.report import Report, Section
from benchmarks.resource_usage import Usage, cpu_seconds
from benchmarks.servers import worker_of
from codehub.adapters.temporal.convergence import TemporalConvergence
from codehub.bootstrap import policy_of
from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.services.requests import RequestContext
from codehub.services.workspaces import request_state
from testkit.deployment import Deployment
from testkit.fake_world import IMAGE
from testkit.rows import add_user, add_workspace
from testkit.waiting import until

WORKSPACES_PER_OWNER = 10
REQUESTS_AT_ONCE = 20
WAKE_SECONDS = 60.0
STEPS = (
    (Operation.STARTING, DesiredState.RUNNING),
    (Operation.STOPPING, DesiredState.STANDBY),
)
Fleet = dict[WorkspaceId, str]


@dataclass
class Crowd:
    """All of them, and how to ask them the same thing at once."""

    deployment: Deployment
    fleet: Fleet
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(REQUESTS_AT_ONCE))

    async def ask(self, desired: DesiredState) -> None:
        await asyncio.gather(*(self._ask(each, desired) for each in self.fleet))

    async def wake(self) -> None:
        await asyncio.gather(*(self._wake(each) for each in self.fleet))

    async def arrive(self, phase: Phase) -> None:
        async def arrived() -> bool:
            return await _count(self.deployment, phase) == len(self.fleet)

        await until(arrived, f"all in {phase}")

    async def _ask(self, workspace_id: WorkspaceId, desired: DesiredState) -> None:
        async with self.slots:
            await request_state(
                self.deployment.database,
                workspace_id,
                desired,
                context=RequestContext(
                    "benchmark", policy_of(self.deployment.settings).limits, datetime.now(UTC)
                ),
            )
        await self._wake(workspace_id)

    async def _wake(self, workspace_id: WorkspaceId) -> None:
        async with self.slots:
            task_queue = self.deployment.settings.temporal.task_queue
            convergence = TemporalConvergence(
                self.deployment.client, task_queue, timeout_seconds=WAKE_SECONDS
            )
            await convergence.wake(workspace_id, self.fleet[workspace_id])


async def measure_throughput(deployment: Deployment, count: int, report: Report) -> None:
    report.say(f"{count} workspaces at once")
    async with worker_of(deployment, "benchmarks.lifecycle.noop_worker") as process:
        crowd = Crowd(deployment, await _create(deployment, count))
        began, before = time.perf_counter(), cpu_seconds(process.pid)
        await crowd.wake()
        await crowd.arrive(Phase.STANDBY)
        rows = [_row(Operation.PROVISIONING, count, began, before, process.pid)]
        for operation, desired in STEPS:
            began, before = time.perf_counter(), cpu_seconds(process.pid)
            await crowd.ask(desired)
            await crowd.arrive(Phase(desired.value))
            rows.append(_row(operation, count, began, before, process.pid))
    columns = ("all at once", "s", "operations/s", "CPU s Temporal", "worker", "PostgreSQL")
    report.add(Section(f"{count} workspaces on a no-op backend, one worker process", columns, rows))


def _row(operation: Operation, count: int, began: float, before: Usage, worker: int) -> Sequence[str | float]:
    seconds = time.perf_counter() - began
    spent = cpu_seconds(worker)
    costs = (round(spent[part] - before[part], 1) for part in ("Temporal", "worker", "PostgreSQL"))
    return (operation, round(seconds, 1), round(count / seconds, 1), *costs)


async def _create(deployment: Deployment, count: int) -> Fleet:
    fleet: Fleet = {}
    async with deployment.database.transaction() as session:
        for number in range(count):
            if number % WORKSPACES_PER_OWNER == 0:
                owner = await add_user(session)
            workspace_id = await add_workspace(
                session,
                owner,
                desired_state=DesiredState.STANDBY,
                phase_changed_at=datetime.now(UTC),
                image_ref=IMAGE,
            )
            fleet[workspace_id] = str(owner)
    return fleet


async def _count(deployment: Deployment, phase: Phase) -> int:
    statement = select(func.count()).where(Workspace.phase == phase, Workspace.operation == Operation.NONE)
    async with deployment.database.transaction() as session:
        return await session.scalar(statement) or 0
