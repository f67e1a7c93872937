"""Operations per second of the control plane alone: many workspaces, providers that do nothing."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import func, select

from benchmarks.report import Report, Section
from benchmarks.resource_usage import Usage, cpu_seconds
from benchmarks.servers import run_worker
from codehub.adapters.temporal.convergence import TemporalConvergence
from codehub.db.models import Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.policy import policy_of
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
Owners = dict[WorkspaceId, str]


@dataclass
class Fleet:
    """Workspaces that all get the same request at once; `owners` maps each to its owner."""

    deployment: Deployment
    owners: Owners
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(REQUESTS_AT_ONCE))

    async def request(self, desired: DesiredState) -> None:
        await asyncio.gather(*(self._request(each, desired) for each in self.owners))

    async def wake(self) -> None:
        await asyncio.gather(*(self._wake(each) for each in self.owners))

    async def wait_for_all(self, phase: Phase) -> None:
        async def arrived() -> bool:
            return await _count(self.deployment, phase) == len(self.owners)

        await until(arrived, f"all in {phase}")

    async def _request(self, workspace_id: WorkspaceId, desired: DesiredState) -> None:
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
            await convergence.wake(workspace_id, self.owners[workspace_id])


async def measure_throughput(deployment: Deployment, count: int, report: Report) -> None:
    report.log(f"{count} workspaces at once")
    async with run_worker(deployment, "benchmarks.lifecycle.noop_worker") as process:
        fleet = Fleet(deployment, await _create(deployment, count))
        began, before = time.perf_counter(), cpu_seconds(process.pid)
        await fleet.wake()
        await fleet.wait_for_all(Phase.STANDBY)
        rows = [_row(Operation.PROVISIONING, count, began, before, process.pid)]
        for operation, desired in STEPS:
            began, before = time.perf_counter(), cpu_seconds(process.pid)
            await fleet.request(desired)
            await fleet.wait_for_all(Phase(desired.value))
            rows.append(_row(operation, count, began, before, process.pid))
    columns = ("operation", "s", "operations/s", "CPU s Temporal", "worker", "PostgreSQL")
    report.add(Section(f"{count} workspaces on a no-op backend, one worker process", columns, rows))


def _row(operation: Operation, count: int, began: float, before: Usage, worker: int) -> Sequence[str | float]:
    seconds = time.perf_counter() - began
    spent = cpu_seconds(worker)
    costs = (round(spent[part] - before[part], 1) for part in ("Temporal", "worker", "PostgreSQL"))
    return (operation, round(seconds, 1), round(count / seconds, 1), *costs)


async def _create(deployment: Deployment, count: int) -> Owners:
    owners: Owners = {}
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
            owners[workspace_id] = str(owner)
    return owners


async def _count(deployment: Deployment, phase: Phase) -> int:
    statement = select(func.count()).where(Workspace.phase == phase, Workspace.operation == Operation.NONE)
    async with deployment.database.transaction() as session:
        return await session.scalar(statement) or 0
