"""The homes: each is brought to rest, wherever it was, and compared with what people were promised."""

import asyncio
import time
from collections.abc import Iterator, Mapping

from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, Operation, Phase
from gameday.checks.api import Asker
from gameday.checks.convergence import EXPLAINED, describe, is_stopped
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows
from gameday.people.journal import Journal
from gameday.stage.stage import Stage
from gameday.stage.tiny_ide import tree_of

POLL_SECONDS = 0.3
AT_ONCE = 3


async def check_homes(
    stage: Stage, asker: Asker, journal: Journal, findings: Findings, deadline_seconds: float
) -> None:
    """A few at a time: bringing one home back from its archive keeps a processor busy."""
    room = asyncio.Semaphore(AT_ONCE)
    deadline = time.monotonic() + deadline_seconds

    async def check(workspace_id: WorkspaceId) -> None:
        async with room:
            row, tree = await _read_at_rest(stage, asker, workspace_id, deadline)
        if tree is None:
            findings.note(Invariant.CONVERGED, [describe(row)], workspace_id)
        else:
            names = journal.expected(workspace_id).keys() | tree.keys()
            findings.note(Invariant.FILES, journal.verify(workspace_id, tree), workspace_id, len(names))

    rows = await read_rows(stage.database)
    for row in rows:
        findings.note(Invariant.CONVERGED, check_fate(row, journal), row.workspace_id)
    await asyncio.gather(*(check(row.workspace_id) for row in rows if not row.deleted))


def check_fate(row: Row, journal: Journal) -> Iterator[str]:
    """Whether it is there at all must be what its owner wished."""
    fate = journal.fate(row.workspace_id)
    if row.deleted and fate.must_exist:
        yield "It is deleted, although nobody asked for that."
    if not row.deleted and fate.must_be_gone:
        yield "It is back, although its deletion was acknowledged and not taken back."


async def _read_at_rest(
    stage: Stage, asker: Asker, workspace_id: WorkspaceId, deadline: float
) -> tuple[Row, Mapping[str, str] | None]:
    """All files of a home that nothing happens to; None if it does not come to rest in time."""
    told_to_stay = False
    row = await _read(stage, workspace_id)
    while time.monotonic() < deadline:
        if told_to_stay and _is_at_rest(row):
            tree = await asyncio.to_thread(tree_of, stage.home(workspace_id))
            # A sweep that had looked at it before it was told to stay may still have moved it.
            if await _read(stage, workspace_id) == row:
                return row, tree
        elif is_stopped(row) and row.error_reason in EXPLAINED:
            await asker.recover(row)
        else:
            told_to_stay = await asker.rest(row) or told_to_stay
        await asyncio.sleep(POLL_SECONDS)
        row = await _read(stage, workspace_id)
    return row, None


async def _read(stage: Stage, workspace_id: WorkspaceId) -> Row:
    [row] = [row for row in await read_rows(stage.database) if row.workspace_id == workspace_id]
    return row


def _is_at_rest(row: Row) -> bool:
    """A volume that is complete and that nobody writes to."""
    wanted = row.desired_state is DesiredState.STANDBY
    return wanted and row.phase is Phase.STANDBY and row.operation is Operation.NONE
