"""What the collector must have removed in time: archives that nothing needs, uploads that never ended."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from codehub.adapters.s3.archives import S3Archives
from codehub.bootstrap import policy_of
from codehub.domain.failures import Failure
from gameday.checks.archives import list_objects, unneeded_of
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import read_rows
from gameday.stage.stage import Stage

POLL_SECONDS = 2.0
# One until an archive is seen as an orphan, one that removes it after its grace; and two to spare.
ROUNDS = 4


async def check_garbage(stage: Stage, findings: Findings) -> int:
    """Wait for the collector; tell how many uploads were left for it to abort one day."""
    grace, period = stage.settings.gc.grace_seconds, stage.settings.sweeps.gc_seconds
    deadline = time.monotonic() + grace + ROUNDS * period
    async with S3Archives.open(stage.store) as archives:
        left = await _unneeded(stage, archives)
        findings.note(Invariant.NO_GARBAGE, (), checks=1 + len(left))
        while left and time.monotonic() < deadline:
            await asyncio.sleep(POLL_SECONDS)
            left &= await _unneeded(stage, archives)
        findings.note(
            Invariant.NO_GARBAGE,
            [f"Nothing needs {key}, but it is still there after {grace:.0f} s of grace." for key in left],
            checks=0,
        )
        return await _abort_uploads(archives, findings)


async def _unneeded(stage: Stage, archives: S3Archives) -> set[str]:
    objects = await list_objects(archives)
    rows = await read_rows(stage.database)
    return unneeded_of(objects, rows, datetime.now(UTC), policy_of(stage.settings).graces)


async def _abort_uploads(archives: S3Archives, findings: Findings) -> int:
    """The collector gives an upload two days; with the clock moved on, its own rule must leave none."""
    one_day = datetime.now(UTC) + timedelta(days=1)
    try:
        aborted = await archives.abort_stale_uploads(one_day)
        left = await archives.abort_stale_uploads(one_day)
    except Failure as failure:
        findings.note(Invariant.NO_GARBAGE, [f"Uploads cannot be aborted: {failure.message}"])
        return 0
    problems = [f"{left} unfinished uploads are left after all have been aborted."] if left else []
    findings.note(Invariant.NO_GARBAGE, problems)
    return aborted
