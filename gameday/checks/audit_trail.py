"""The histories: operations do not overlap, each one ends, and the audit trail explains every state."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from temporalio.client import Client

from codehub.db.events import EventKind, EventView
from codehub.domain.states import Operation
from gameday.checks.convergence import EXPECTED_REASONS
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows, read_trails
from gameday.stage.stage import Stage

END_EVENTS = {EventKind.OPERATION_COMPLETED, EventKind.OPERATION_FAILED, EventKind.OPERATION_RELEASED}
# The workflow of an operation has its name in CamelCase.
WORKFLOWS = {each.title().replace("_", "") for each in Operation if each is not Operation.NONE}


@dataclass(frozen=True)
class WorkflowRun:
    """One execution of an operation's workflow; an open one has no end."""

    kind: str
    began: datetime
    ended: datetime | None


async def check_histories(stage: Stage, findings: Findings) -> None:
    rows = await read_rows(stage.database)
    trails = await read_trails(stage.database, [row.workspace_id for row in rows])
    for row in rows:
        trail = trails[row.workspace_id]
        findings.record(Invariant.AUDIT, check_trail(row, trail), row.workspace_id, checks=len(trail))
        findings.record(Invariant.CONVERGED, check_reasons(trail), row.workspace_id, checks=0)
        runs = await read_runs(stage.client, row.workspace_id)
        findings.record(Invariant.NO_OVERLAP, check_overlap(runs), row.workspace_id, checks=len(runs))


def check_trail(row: Row, trail: Sequence[EventView]) -> Iterator[str]:
    """Yield the parts of a workspace's state that its audit trail does not explain."""
    if not trail or trail[0].kind != EventKind.CREATED:
        yield "Its audit trail does not begin with its creation."
        return
    yield from check_alternation(trail, row)
    yield from _check_end(row, trail)


def check_alternation(trail: Sequence[EventView], row: Row) -> Iterator[str]:
    """Claims and ends must alternate, and each end must belong to the claim before it."""
    claimed: EventView | None = None
    for line in trail:
        if line.kind == EventKind.OPERATION_CLAIMED:
            if claimed is not None:
                yield f"{line.operation} was claimed (event {line.id}) before {claimed.operation} ended."
            claimed = line
        elif line.kind in END_EVENTS:
            if claimed is None or claimed.operation is not line.operation:
                yield f"{line.operation} ended (event {line.id}) without a claim."
            claimed = None
    in_progress = claimed.operation if claimed else Operation.NONE
    if in_progress is not row.operation:
        yield f"According to the trail the operation is {in_progress}, but it is {row.operation}."


def _check_end(row: Row, trail: Sequence[EventView]) -> Iterator[str]:
    phases = [line.phase for line in trail if line.phase is not None]
    if phases[-1] is not row.phase:
        yield f"The trail ends in {phases[-1]}, but the workspace is {row.phase}."
    requested = [line.detail["to"] for line in trail if "to" in line.detail]
    if requested[-1] != row.desired_state:
        yield f"The trail last requests {requested[-1]}, but the desired state is {row.desired_state}."


def check_reasons(trail: Sequence[EventView]) -> Iterator[str]:
    """The faults must explain every recorded error, also those that were recovered."""
    for line in trail:
        if line.error_reason is not None and line.error_reason not in EXPECTED_REASONS:
            yield f"No fault explains {line.error_reason} (event {line.id}): {line.detail.get('message', '')}"


def check_overlap(runs: Sequence[WorkflowRun]) -> Iterator[str]:
    """Each run must end before the next one begins; only the last may be open."""
    ordered = sorted(runs, key=lambda run: run.began)
    for earlier, later in pairwise(ordered):
        if earlier.ended is None:
            yield f"{later.kind} began at {later.began:%H:%M:%S.%f}, but {earlier.kind} is still open."
        elif later.began < earlier.ended:
            yield (
                f"{later.kind} began at {later.began:%H:%M:%S.%f}, "
                f"before {earlier.kind} ended at {earlier.ended:%H:%M:%S.%f}."
            )


async def read_runs(client: Client, workspace_id: str) -> list[WorkflowRun]:
    """Read the runs from Temporal, independently of what CodeHub has recorded."""
    found = client.list_workflows(f'WorkspaceId = "{workspace_id}"')
    return [
        WorkflowRun(each.workflow_type, each.start_time, each.close_time)
        async for each in found
        if each.workflow_type in WORKFLOWS
    ]
