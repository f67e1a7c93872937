"""After the faults: everything arrives, and what stopped with an error goes on once somebody says so."""

import asyncio
import time
from dataclasses import dataclass

from codehub.db.session import Database
from codehub.domain.states import ErrorReason, Operation, Phase
from gameday.checks.api import Asker
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows

POLL_SECONDS = 0.5
# What processes that die, services that do not answer and full disks lead to. Nothing in the game loses or
# damages a home or an archive, so every other reason is wrong.
EXPLAINED = frozenset(
    {
        ErrorReason.TIMEOUT,
        ErrorReason.RETRY_EXCEEDED,
        ErrorReason.ACTION_FAILED,
        ErrorReason.UNREACHABLE,
    }
)


@dataclass(frozen=True)
class Arrivals:
    """How it went: what had to be recovered by a person, and how long it took until all had arrived."""

    workspaces: int
    recovered: int
    seconds: float


async def check_arrivals(
    database: Database, asker: Asker, findings: Findings, deadline_seconds: float
) -> Arrivals:
    """Each must be seen where it shall be once: idle times go on moving those that have arrived."""
    began = time.monotonic()
    recovered: set[str] = set()
    arrived: set[str] = set()
    wrong: set[str] = set()
    rows = await read_rows(database)
    while time.monotonic() < began + deadline_seconds:
        for row in rows:
            if row.is_converged:
                arrived.add(row.workspace_id)
            elif is_stopped(row) and row.error_reason not in EXPLAINED:
                wrong.add(row.workspace_id)
            elif is_stopped(row) and await asker.recover(row):
                recovered.add(row.workspace_id)
        if len(arrived | wrong) == len(rows):
            break
        await asyncio.sleep(POLL_SECONDS)
        rows = await read_rows(database)
    for row in rows:
        problems = [] if row.workspace_id in arrived else [describe(row)]
        findings.note(Invariant.CONVERGED, problems, row.workspace_id)
    return Arrivals(len(rows), len(recovered), time.monotonic() - began)


def is_stopped(row: Row) -> bool:
    """Whether it waits for a person; a deletion may stop too, but stays DELETING."""
    in_error = row.phase is Phase.ERROR or (row.phase is Phase.DELETING and not row.purge)
    return in_error and row.operation is Operation.NONE and row.error_reason is not None


def describe(row: Row) -> str:
    reason = f", {row.error_reason}: {row.error_message}" if row.error_reason else ""
    return f"It is {row.phase} with operation {row.operation}, and shall be {row.desired_state}{reason}."
