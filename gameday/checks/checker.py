"""After the last fault: everything heals, and then nothing may be lost, doubled, left over or unexplained."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gameday.checks.api import Asker, check_follower
from gameday.checks.archives import check_garbage
from gameday.checks.audit_trail import check_overlap, check_reasons, check_trail, read_runs
from gameday.checks.convergence import Arrivals, check_arrivals
from gameday.checks.findings import Findings, Invariant
from gameday.checks.homes import check_homes
from gameday.checks.orphans import check_orphans
from gameday.checks.rows import read_rows, read_trails
from gameday.people.followers import Follower
from gameday.people.journal import Journal
from gameday.stage.stage import Stage

DEADLINE_SECONDS = 180.0


@dataclass(frozen=True)
class Healing:
    """What the checker saw beside what it found."""

    arrivals: Arrivals
    aborted_uploads: int


async def check_everything(
    stage: Stage,
    journal: Journal,
    followers: Mapping[str, Follower],
    findings: Findings,
    say: Callable[[str], None],
) -> Healing:
    """In this order: what is looked at later needs what was waited for earlier."""
    asker = Asker(stage)
    try:
        say("Waiting until every workspace has arrived ...")
        arrivals = await check_arrivals(stage.database, asker, findings, DEADLINE_SECONDS)
        say(f"That took {arrivals.seconds:.0f} s. Looking for what is left over ...")
        await check_orphans(stage, findings)
        say("Bringing every home to rest to compare it with what people were promised ...")
        await check_homes(stage, asker, journal, findings, DEADLINE_SECONDS)
        await check_orphans(stage, findings)
        await asyncio.gather(*(check_follower(asker, *each, findings) for each in followers.items()))
        say("Waiting for the collector to remove what nothing needs ...")
        uploads = await check_garbage(stage, findings)
        say("Reading the histories ...")
        await check_histories(stage, findings)
        return Healing(arrivals, uploads)
    finally:
        await asker.close()


async def check_histories(stage: Stage, findings: Findings) -> None:
    rows = await read_rows(stage.database)
    trails = await read_trails(stage.database, [row.workspace_id for row in rows])
    for row in rows:
        trail = trails[row.workspace_id]
        findings.note(Invariant.AUDIT, check_trail(row, trail), row.workspace_id, checks=len(trail))
        findings.note(Invariant.CONVERGED, check_reasons(trail), row.workspace_id, checks=0)
        runs = await read_runs(stage.client, row.workspace_id)
        findings.note(Invariant.NO_OVERLAP, check_overlap(runs), row.workspace_id, checks=len(runs))
