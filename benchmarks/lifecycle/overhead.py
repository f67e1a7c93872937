"""STARTING and STOPPING through the whole control plane, beside the bare provider call, in turns."""

import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.lifecycle.operation_steps import STEPS, step_times
from benchmarks.lifecycle.phase_waiter import Arrivals, listening
from benchmarks.report import Cell, Report, Section, milliseconds, percentile, verdict
from benchmarks.servers import worker_of
from codehub.adapters.local.ides import code_server
from codehub.adapters.local.instances import LocalInstances
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.volumes import LocalVolumes
from codehub.contracts import workspace_workflow_id
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.ports import InstanceRequest
from testkit.deployment import BIN, Deployment
from testkit.rows import new_workspace_id

GOAL_MILLISECONDS = 150
IMAGE = "code-server"
WARM_UP = 3
DESIRED = {Operation.STARTING: DesiredState.RUNNING, Operation.STOPPING: DesiredState.STANDBY}


@dataclass
class Times:
    """Seconds of each round."""

    bare: defaultdict[Operation, list[float]] = field(default_factory=lambda: defaultdict(list))
    whole: defaultdict[Operation, list[float]] = field(default_factory=lambda: defaultdict(list))
    steps: defaultdict[Operation, list[list[float]]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True)
class Bare:
    """The provider without a control plane around it."""

    instances: LocalInstances
    workspace_id: WorkspaceId

    def call(self, operation: Operation) -> Awaitable[None]:
        if operation is Operation.STARTING:
            return self.instances.start(InstanceRequest(self.workspace_id, IMAGE), lambda _: None)
        return self.instances.stop(self.workspace_id)


async def measure_overhead(deployment: Deployment, rounds: int, report: Report) -> None:
    report.say(f"overhead of the control plane, {rounds} rounds")
    times = Times()
    async with worker_of(deployment), listening(deployment) as arrivals, _bare(deployment) as bare:
        workspace_id = await deployment.create(DesiredState.STANDBY)
        await deployment.wake(workspace_id)
        await arrivals.wait_for(workspace_id, Phase.STANDBY)
        for _ in range(WARM_UP):
            await _round(bare, arrivals, workspace_id, Times())
        for _ in range(rounds):
            await _round(bare, arrivals, workspace_id, times)
    report.add(_overhead(times))
    report.add(_where_it_goes(times))


@asynccontextmanager
async def _bare(deployment: Deployment) -> AsyncIterator[Bare]:
    root = Path(deployment.environment["CODEHUB_DATA_DIR"]) / "bare"
    LocalRoot.at(root).prepare()
    workspace_id = new_workspace_id()
    await LocalVolumes(root).provision(workspace_id)
    instances = LocalInstances(root, ides={IMAGE: code_server(BIN / IMAGE)})
    try:
        yield Bare(instances, workspace_id)
    finally:
        await instances.stop(workspace_id)


async def _round(bare: Bare, arrivals: Arrivals, workspace_id: WorkspaceId, times: Times) -> None:
    for operation in DESIRED:
        began = time.perf_counter()
        await bare.call(operation)
        times.bare[operation].append(time.perf_counter() - began)
        await _operate(arrivals, workspace_id, operation, times)


async def _operate(arrivals: Arrivals, workspace_id: WorkspaceId, operation: Operation, times: Times) -> None:
    deployment, desired = arrivals.deployment, DESIRED[operation]
    began, asked = time.perf_counter(), [datetime.now(UTC)]
    await deployment.want(workspace_id, desired)
    asked.append(datetime.now(UTC))
    await deployment.wake(workspace_id)
    await arrivals.wait_for(workspace_id, Phase(desired.value))
    times.whole[operation].append(time.perf_counter() - began)
    seen = datetime.now(UTC)
    # The run's own end comes after the row has settled; the next round shall not overlap it.
    await deployment.client.get_workflow_handle(workspace_workflow_id(workspace_id)).result()
    times.steps[operation].append(await step_times(deployment.client, workspace_id, operation, asked, seen))


def _overhead(times: Times) -> Section:
    rows: list[Sequence[Cell]] = []
    remarks = []
    for operation in DESIRED:
        bare, whole = times.bare[operation], times.whole[operation]
        beyond = milliseconds(percentile(whole, 50) - percentile(bare, 50))
        figures = (percentile(values, percent) for values in (bare, whole) for percent in (50, 90))
        rows.append((operation, *(milliseconds(each) for each in figures), beyond))
        met = verdict(beyond <= GOAL_MILLISECONDS)
        remarks.append(f"{operation}: {beyond} ms beyond the bare call (goal: {GOAL_MILLISECONDS} ms): {met}")
    columns = ("ms", "bare p50", "bare p90", "whole p50", "whole p90", "beyond, p50")
    return Section(f"Overhead, {len(times.bare[Operation.STARTING])} rounds each", columns, rows, remarks)


def _where_it_goes(times: Times) -> Section:
    medians = {
        operation: [milliseconds(statistics.median(step)) for step in zip(*steps, strict=True)]
        for operation, steps in times.steps.items()
    }
    rows: list[Sequence[Cell]] = [
        (step, *(medians[operation][number] for operation in DESIRED)) for number, step in enumerate(STEPS)
    ]
    return Section("Where it goes (median ms)", ("step", *DESIRED), rows)
