"""All checks after the last fault, in order."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gameday.checks.api import ApiClient, check_follower
from gameday.checks.archives import check_garbage
from gameday.checks.audit_trail import check_histories
from gameday.checks.convergence import Convergence, check_convergence
from gameday.checks.findings import Findings
from gameday.checks.homes import check_homes
from gameday.checks.orphans import check_orphans
from gameday.people.followers import Follower
from gameday.people.journal import Journal
from gameday.stage.stage import Stage

DEADLINE_SECONDS = 180.0


@dataclass(frozen=True)
class CheckSummary:
    """Figures for the report, in addition to the findings."""

    convergence: Convergence
    aborted_uploads: int


async def check_everything(
    stage: Stage,
    journal: Journal,
    followers: Mapping[str, Follower],
    findings: Findings,
    say: Callable[[str], None],
) -> CheckSummary:
    """Run the checks; later ones need what earlier ones waited for."""
    api = ApiClient(stage)
    try:
        say("Waiting for every workspace to converge ...")
        convergence = await check_convergence(stage.database, api, findings, DEADLINE_SECONDS)
        say(f"That took {convergence.seconds:.0f} s. Looking for leftovers ...")
        await check_orphans(stage, findings)
        say("Stopping every workspace and comparing its home with the acknowledged files ...")
        await check_homes(stage, api, journal, findings, DEADLINE_SECONDS)
        await check_orphans(stage, findings)
        await asyncio.gather(*(check_follower(api, *each, findings) for each in followers.items()))
        say("Waiting for the garbage collector ...")
        uploads = await check_garbage(stage, findings)
        say("Reading the histories ...")
        await check_histories(stage, findings)
        return CheckSummary(convergence, uploads)
    finally:
        await api.close()
