"""After the faults, every workspace converges; failed ones continue after a retry."""

import asyncio
import time
from dataclasses import dataclass

from codehub.db.session import Database
from codehub.domain.states import ErrorReason, Operation, Phase
from gameday.checks.api import ApiClient
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows

POLL_SECONDS = 0.5
# The reasons that killed processes, unavailable services and full disks lead to. No fault loses or damages a
# home or an archive, so any other reason is a violation.
EXPECTED_REASONS = frozenset(
    {
        ErrorReason.TIMEOUT,
        ErrorReason.RETRY_EXCEEDED,
        ErrorReason.ACTION_FAILED,
        ErrorReason.UNREACHABLE,
    }
)


@dataclass(frozen=True)
class Convergence:
    """The result of waiting for all workspaces to converge: how many, how many needed a retry, how long."""

    workspaces: int
    recovered: int
    seconds: float


async def check_convergence(
    database: Database, api: ApiClient, findings: Findings, deadline_seconds: float
) -> Convergence:
    """Wait until each workspace has converged once; idle workspaces continue to change after that."""
    began = time.monotonic()
    recovered: set[str] = set()
    converged: set[str] = set()
    unexplained: set[str] = set()
    rows = await read_rows(database)
    while time.monotonic() < began + deadline_seconds:
        for row in rows:
            if row.is_converged:
                converged.add(row.workspace_id)
            elif needs_person(row) and row.error_reason not in EXPECTED_REASONS:
                unexplained.add(row.workspace_id)
            elif needs_person(row) and await api.recover(row):
                recovered.add(row.workspace_id)
        if len(converged | unexplained) == len(rows):
            break
        await asyncio.sleep(POLL_SECONDS)
        rows = await read_rows(database)
    for row in rows:
        problems = [] if row.workspace_id in converged else [describe(row)]
        findings.record(Invariant.CONVERGED, problems, row.workspace_id)
    return Convergence(len(rows), len(recovered), time.monotonic() - began)


def needs_person(row: Row) -> bool:
    """Return whether the workspace waits for a person; a failed deletion stays DELETING."""
    in_error = row.phase is Phase.ERROR or (row.phase is Phase.DELETING and not row.purge)
    return in_error and row.operation is Operation.NONE and row.error_reason is not None


def describe(row: Row) -> str:
    reason = f", {row.error_reason}: {row.error_message}" if row.error_reason else ""
    return f"It is {row.phase} with operation {row.operation}, but should be {row.desired_state}{reason}."
