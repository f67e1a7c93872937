"""STARTING and STOPPING through the whole control plane, alternating with the bare provider call."""

import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.lifecycle.operation_steps import STEPS, step_times
from benchmarks.lifecycle.phase_waiter import PhaseWaiter, open_waiter
from benchmarks.report import Cell, Report, Section, milliseconds, percentile, verdict
from benchmarks.servers import run_worker
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
    """The seconds of each round."""

    bare: defaultdict[Operation, list[float]] = field(default_factory=lambda: defaultdict(list))
    whole: defaultdict[Operation, list[float]] = field(default_factory=lambda: defaultdict(list))
    steps: defaultdict[Operation, list[list[float]]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True)
class BareProvider:
    """The provider without a control plane."""

    instances: LocalInstances
    workspace_id: WorkspaceId

    def call(self, operation: Operation) -> Awaitable[None]:
        if operation is Operation.STARTING:
            return self.instances.start(InstanceRequest(self.workspace_id, IMAGE), lambda _: None)
        return self.instances.stop(self.workspace_id)


async def measure_overhead(deployment: Deployment, rounds: int, report: Report) -> None:
    report.log(f"overhead of the control plane, {rounds} rounds")
    times = Times()
    async with run_worker(deployment), open_waiter(deployment) as waiter, _bare(deployment) as bare:
        workspace_id = await deployment.create(DesiredState.STANDBY)
        await deployment.wake(workspace_id)
        await waiter.wait_for(workspace_id, Phase.STANDBY)
        for _ in range(WARM_UP):
            await _round(bare, waiter, workspace_id, Times())
        for _ in range(rounds):
            await _round(bare, waiter, workspace_id, times)
    report.add(_overhead_section(times))
    report.add(_step_section(times))


@asynccontextmanager
async def _bare(deployment: Deployment) -> AsyncIterator[BareProvider]:
    root = Path(deployment.environment["CODEHUB_DATA_DIR"]) / "bare"
    LocalRoot.at(root).prepare()
    workspace_id = new_workspace_id()
    await LocalVolumes(root).provision(workspace_id)
    instances = LocalInstances(root, ides={IMAGE: code_server(BIN / IMAGE)})
    try:
        yield BareProvider(instances, workspace_id)
    finally:
        await instances.stop(workspace_id)


async def _round(bare: BareProvider, waiter: PhaseWaiter, workspace_id: WorkspaceId, times: Times) -> None:
    for operation in DESIRED:
        began = time.perf_counter()
        await bare.call(operation)
        times.bare[operation].append(time.perf_counter() - began)
        await _operate(waiter, workspace_id, operation, times)


async def _operate(
    waiter: PhaseWaiter, workspace_id: WorkspaceId, operation: Operation, times: Times
) -> None:
    deployment, desired = waiter.deployment, DESIRED[operation]
    began, requested = time.perf_counter(), [datetime.now(UTC)]
    await deployment.want(workspace_id, desired)
    requested.append(datetime.now(UTC))
    await deployment.wake(workspace_id)
    await waiter.wait_for(workspace_id, Phase(desired.value))
    times.whole[operation].append(time.perf_counter() - began)
    noticed = datetime.now(UTC)
    # The workflow ends after the row has settled; the next round must not overlap it.
    await deployment.client.get_workflow_handle(workspace_workflow_id(workspace_id)).result()
    times.steps[operation].append(
        await step_times(deployment.client, workspace_id, operation, requested, noticed)
    )


def _overhead_section(times: Times) -> Section:
    rows: list[Sequence[Cell]] = []
    remarks = []
    for operation in DESIRED:
        bare, whole = times.bare[operation], times.whole[operation]
        overhead = milliseconds(percentile(whole, 50) - percentile(bare, 50))
        figures = (percentile(values, percent) for values in (bare, whole) for percent in (50, 90))
        rows.append((operation, *(milliseconds(each) for each in figures), overhead))
        met = verdict(overhead <= GOAL_MILLISECONDS)
        remarks.append(
            f"{operation}: {overhead} ms more than the bare call (goal: {GOAL_MILLISECONDS} ms): {met}"
        )
    columns = ("ms", "bare p50", "bare p90", "whole p50", "whole p90", "overhead, p50")
    return Section(f"Overhead, {len(times.bare[Operation.STARTING])} rounds each", columns, rows, remarks)


def _step_section(times: Times) -> Section:
    medians = {
        operation: [milliseconds(statistics.median(step)) for step in zip(*steps, strict=True)]
        for operation, steps in times.steps.items()
    }
    rows: list[Sequence[Cell]] = [
        (step, *(medians[operation][number] for operation in DESIRED)) for number, step in enumerate(STEPS)
    ]
    return Section("Steps (median ms)", ("step", *DESIRED), rows)
