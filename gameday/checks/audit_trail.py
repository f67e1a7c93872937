"""What the histories must show: one operation after the other, each with an end, and a trail to explain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from temporalio.client import Client

from codehub.db.events import EventKind, EventView
from codehub.domain.states import Operation
from gameday.checks.convergence import EXPLAINED
from gameday.checks.rows import Row

ENDS = {EventKind.OPERATION_COMPLETED, EventKind.OPERATION_FAILED, EventKind.OPERATION_RELEASED}


@dataclass(frozen=True)
class Run:
    """One execution of an operation's workflow; open ones have no end."""

    kind: str
    began: datetime
    ended: datetime | None


# The workflow of an operation has its name, spelt as a class.
WORKFLOWS = {each.title().replace("_", "") for each in Operation if each is not Operation.NONE}


def check_trail(row: Row, trail: Sequence[EventView]) -> Iterator[str]:
    """What the trail of a workspace at rest leaves unexplained."""
    if not trail or trail[0].kind != EventKind.CREATED:
        yield "Its audit trail does not begin with its creation."
        return
    yield from check_alternation(trail, row)
    yield from _check_end(row, trail)


def check_alternation(trail: Sequence[EventView], row: Row) -> Iterator[str]:
    """Claim, end, claim, end; and what was claimed is what ended."""
    claimed: EventView | None = None
    for line in trail:
        if line.kind == EventKind.OPERATION_CLAIMED:
            if claimed is not None:
                yield f"{line.operation} was claimed (event {line.id}) before {claimed.operation} had ended."
            claimed = line
        elif line.kind in ENDS:
            if claimed is None or claimed.operation is not line.operation:
                yield f"{line.operation} ended (event {line.id}) without having been claimed."
            claimed = None
    under_way = claimed.operation if claimed else Operation.NONE
    if under_way is not row.operation:
        yield f"By the trail, the operation under way is {under_way}; it is {row.operation}."


def _check_end(row: Row, trail: Sequence[EventView]) -> Iterator[str]:
    phases = [line.phase for line in trail if line.phase is not None]
    if phases[-1] is not row.phase:
        yield f"The trail ends in {phases[-1]}, but the workspace is {row.phase}."
    wanted = [line.detail["to"] for line in trail if "to" in line.detail]
    if wanted[-1] != row.desired_state:
        yield f"The trail ends with {wanted[-1]} asked for, but {row.desired_state} is desired."


def check_reasons(trail: Sequence[EventView]) -> Iterator[str]:
    """Also an error that was left again must have had a reason that the faults explain."""
    for line in trail:
        if line.error_reason is not None and line.error_reason not in EXPLAINED:
            yield f"No fault explains {line.error_reason} (event {line.id}): {line.detail.get('message', '')}"


def check_overlap(runs: Sequence[Run]) -> Iterator[str]:
    """Each ended before the next one began; only the last may still be open."""
    ordered = sorted(runs, key=lambda run: run.began)
    for earlier, later in pairwise(ordered):
        if earlier.ended is None:
            yield f"{later.kind} began at {later.began:%H:%M:%S.%f}, and {earlier.kind} is still open."
        elif later.began < earlier.ended:
            yield (
                f"{later.kind} began at {later.began:%H:%M:%S.%f}, "
                f"before {earlier.kind} ended at {earlier.ended:%H:%M:%S.%f}."
            )


async def read_runs(client: Client, workspace_id: str) -> list[Run]:
    """From Temporal's own list, not from what CodeHub wrote down."""
    found = client.list_workflows(f'WorkspaceId = "{workspace_id}"')
    return [
        Run(each.workflow_type, each.start_time, each.close_time)
        async for each in found
        if each.workflow_type in WORKFLOWS
    ]
