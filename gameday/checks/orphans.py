"""Orphans: compare the volumes, instances and jobs that exist with the database."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from codehub.domain.states import Operation, Phase
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row, read_rows
from gameday.stage.stage import Stage

POLL_SECONDS = 1.0
# Sweeps that remove leftovers run every few seconds, and a removal may need several attempts.
DEADLINE_SECONDS = 60.0
PHASES_WITH_VOLUME = frozenset({Phase.STANDBY, Phase.RUNNING})

Problem = tuple[str | None, str]


async def check_orphans(stage: Stage, findings: Findings) -> None:
    """Record the problems that persist; idle workspaces continue to change during the check."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    problems = await _find_problems(stage)
    while problems and time.monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        problems &= await _find_problems(stage)
    rows = await read_rows(stage.database)
    findings.record(Invariant.NO_ORPHANS, (), checks=3 * len(rows) + 1)
    for workspace_id, words in sorted(problems, key=str):
        findings.record(Invariant.NO_ORPHANS, [words], workspace_id, checks=0)


async def _find_problems(stage: Stage) -> set[Problem]:
    """Compare what exists with the rows that did not change meanwhile."""
    before = await read_rows(stage.database)
    volumes, instances, jobs = set(await stage.volumes()), await stage.all_instances(), await stage.jobs()
    leftovers = await stage.backend.leftovers()
    after = {row.workspace_id: row for row in await read_rows(stage.database)}
    unchanged = [row for row in before if row.operation is Operation.NONE and after[row.workspace_id] == row]
    found = set(find_mismatches(unchanged, volumes, instances))
    found |= set(find_leftovers(unchanged, leftovers))
    existing = {
        *(("volume", each) for each in volumes),
        *(("instance", each) for each in instances),
        *((name, each) for each, names in leftovers.items() for name in names),
    }
    found |= {
        (None, f"The {kind} of {each} belongs to no workspace.")
        for kind, each in existing
        if each not in after
    }
    if all(row.operation is Operation.NONE for row in after.values()):
        found |= {(None, f"The storage job {each} runs although no operation does.") for each in jobs}
    return found


def find_mismatches(
    rows: Iterable[Row], volumes: Set[str], instances: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    for row in rows:
        if row.phase is Phase.ERROR or row.error_reason is not None:
            continue  # a person decides about what an error leaves behind
        if row.workspace_id in volumes and row.phase not in PHASES_WITH_VOLUME:
            yield row.workspace_id, f"It is {row.phase}, but it has a volume."
        if row.workspace_id not in volumes and row.phase in PHASES_WITH_VOLUME:
            yield row.workspace_id, f"It is {row.phase}, but it has no volume."
        running = sorted(instances.get(row.workspace_id, ()))
        if row.phase is not Phase.RUNNING and running:
            yield row.workspace_id, f"It is {row.phase}, but it has an instance ({', '.join(running)})."
        if row.phase is Phase.RUNNING and len(running) != 1:
            yield row.workspace_id, f"It is RUNNING, but it has {len(running)} instances."


def find_leftovers(rows: Iterable[Row], leftovers: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Find what a job left behind: the next job removes it, or the removal of the volume."""
    for row in rows:
        if row.phase not in PHASES_WITH_VOLUME and row.error_reason is None:
            for each in sorted(leftovers.get(row.workspace_id, ())):
                yield row.workspace_id, f"It is {row.phase}, but it still has the {each}."
