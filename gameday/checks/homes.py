"""Homes: stop each workspace and compare its files with what was acknowledged."""

import asyncio
import time
from collections.abc import Iterator, Mapping

from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from gameday.checks.api import ApiClient
from gameday.checks.convergence import EXPECTED_REASONS, describe, needs_person
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows
from gameday.people.journal import Journal
from gameday.stage.stage import Stage
from gameday.stage.tiny_ide import hash_tree

POLL_SECONDS = 0.3
# Restoring one home keeps a processor busy.
CONCURRENT_CHECKS = 3


async def check_homes(
    stage: Stage, api: ApiClient, journal: Journal, findings: Findings, deadline_seconds: float
) -> None:
    slots = asyncio.Semaphore(CONCURRENT_CHECKS)
    deadline = time.monotonic() + deadline_seconds

    async def check(workspace_id: WorkspaceId) -> None:
        async with slots:
            row, tree = await _read_stopped_home(stage, api, workspace_id, deadline)
        if tree is None:
            findings.record(Invariant.CONVERGED, [describe(row)], workspace_id)
        else:
            names = journal.expected(workspace_id).keys() | tree.keys()
            findings.record(Invariant.FILES, journal.verify(workspace_id, tree), workspace_id, len(names))

    rows = await read_rows(stage.database)
    for row in rows:
        findings.record(Invariant.CONVERGED, check_existence(row, journal), row.workspace_id)
    await asyncio.gather(*(check(row.workspace_id) for row in rows if not row.deleted))


def check_existence(row: Row, journal: Journal) -> Iterator[str]:
    """A workspace must exist, or be deleted, as its owner asked."""
    existence = journal.existence(row.workspace_id)
    if row.deleted and existence.must_exist:
        yield "It is deleted, but nobody asked for that."
    if not row.deleted and existence.must_be_gone:
        yield "It exists, although its deletion was acknowledged and not undone."


async def _read_stopped_home(
    stage: Stage, api: ApiClient, workspace_id: WorkspaceId, deadline: float
) -> tuple[Row, Mapping[str, str] | None]:
    """Stop the workspace and return its files, or None if it does not stop in time."""
    requested = False
    row = await _read_row(stage, workspace_id)
    while time.monotonic() < deadline:
        if requested and _is_stopped(row):
            tree = await asyncio.to_thread(hash_tree, await stage.home(workspace_id))
            # A sweep that had read the row before the request may still have changed it.
            if await _read_row(stage, workspace_id) == row:
                return row, tree
        elif needs_person(row) and row.error_reason in EXPECTED_REASONS:
            await api.recover(row)
        else:
            requested = await api.request_standby(row) or requested
        await asyncio.sleep(POLL_SECONDS)
        row = await _read_row(stage, workspace_id)
    return row, None


async def _read_row(stage: Stage, workspace_id: WorkspaceId) -> Row:
    [row] = [row for row in await read_rows(stage.database) if row.workspace_id == workspace_id]
    return row


def _is_stopped(row: Row) -> bool:
    """Return whether its volume is complete and nothing writes to it."""
    wanted = row.desired_state is DesiredState.STANDBY
    return wanted and row.phase is Phase.STANDBY and row.operation is Operation.NONE
