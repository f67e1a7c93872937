"""What really is there, beside what the database says there should be."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from codehub.domain.states import Operation, Phase
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows
from gameday.stage.stage import Stage

POLL_SECONDS = 1.0
# Sweeps that remove what was left come every few seconds, and a removal may have to be tried again.
PATIENCE_SECONDS = 60.0
WITH_VOLUME = frozenset({Phase.STANDBY, Phase.RUNNING})

Problem = tuple[str | None, str]


async def check_orphans(stage: Stage, findings: Findings) -> None:
    """Idle times go on moving workspaces, so only what is wrong at every look counts."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    problems = await _look(stage)
    while problems and time.monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        problems &= await _look(stage)
    rows = await read_rows(stage.database)
    findings.note(Invariant.NO_ORPHANS, (), checks=3 * len(rows) + 1)
    for workspace_id, words in sorted(problems, key=str):
        findings.note(Invariant.NO_ORPHANS, [words], workspace_id, checks=0)


async def _look(stage: Stage) -> set[Problem]:
    """What does not fit to the rows, where those are the same before and after the look."""
    before = await read_rows(stage.database)
    volumes, running, jobs = set(await stage.volumes()), await stage.all_instances(), await stage.jobs()
    after = {row.workspace_id: row for row in await read_rows(stage.database)}
    quiet = [row for row in before if row.operation is Operation.NONE and after[row.workspace_id] == row]
    found = set(misfits(quiet, volumes, running))
    strays = {("volume", each) for each in volumes} | {("instance", each) for each in running}
    found |= {
        (None, f"The {what} of {each} belongs to no workspace.") for what, each in strays if each not in after
    }
    if all(row.operation is Operation.NONE for row in after.values()):
        found |= {(None, f"The storage job {each} runs although nothing is under way.") for each in jobs}
    return found


def misfits(
    rows: Iterable[Row], volumes: Set[str], running: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    for row in rows:
        if row.phase is Phase.ERROR or row.error_reason is not None:
            continue  # what an error leaves is a person's to decide about
        if row.workspace_id in volumes and row.phase not in WITH_VOLUME:
            yield row.workspace_id, f"It is {row.phase}, but there is a volume."
        if row.workspace_id not in volumes and row.phase in WITH_VOLUME:
            yield row.workspace_id, f"It is {row.phase}, but there is no volume."
        there = sorted(running.get(row.workspace_id, ()))
        if row.phase is not Phase.RUNNING and there:
            yield row.workspace_id, f"It is {row.phase}, but there is an instance ({', '.join(there)})."
        if row.phase is Phase.RUNNING and len(there) != 1:
            yield row.workspace_id, f"It is RUNNING, but {len(there)} instances are there."
