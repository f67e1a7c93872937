"""Faults of the disk under the homes: it is full, or replaced by another one while workers restart."""

import asyncio
from contextlib import suppress
from random import Random

from codehub.adapters.local.root import LocalRoot
from gameday.faults.fault import NothingToBreak
from gameday.faults.processes import stopped
from gameday.stage.disk import SmallDisk
from gameday.stage.stage import WORKERS, Stage

SHORTEST_FULL_SECONDS, LONGEST_FULL_SECONDS = 1.0, 5.0
# After every worker has refused to start once.
SHORTEST_SWAP_SECONDS, LONGEST_SWAP_SECONDS = 1.0, 5.0
REFUSAL_SECONDS = 20.0
REFUSAL = "exit code 2"
POLL_SECONDS = 0.1


async def fill_disk(stage: Stage, random: Random) -> str:
    seconds = random.uniform(SHORTEST_FULL_SECONDS, LONGEST_FULL_SECONDS)
    with _require_disk(stage).full():
        await asyncio.sleep(seconds)
    return f"the disk of the homes was full for {seconds:.1f} s"


async def swap_homes(stage: Stage, random: Random) -> str:
    """Restart the workers on another disk: an empty one, or one that belongs to another CodeHub.

    The checks notice if anything reports the homes as lost or uses the other disk.
    """
    seconds = random.uniform(SHORTEST_SWAP_SECONDS, LONGEST_SWAP_SECONDS)
    is_prepared = random.choice((True, False))
    disk = _require_disk(stage)
    if set(WORKERS) & set(stage.unavailable()):
        # Otherwise they might never become ready.
        raise NothingToBreak("a worker was starting")
    # As when a machine restarts, no operation is running when the disk changes.
    with stopped([pid for name in WORKERS if (pid := stage.pid(name))]):
        for job in await stage.jobs():
            await stage.backend.kill_job(job)
        with disk.swapped():
            if is_prepared:
                LocalRoot.at(disk.path).prepare()
            await asyncio.gather(*(stage.stack.kill(name) for name in WORKERS))
            refused = await _wait_for_refusals(stage)
            await asyncio.sleep(seconds)
    found = "that of another CodeHub" if is_prepared else "empty"
    return f"the home directory was {found} when the workers restarted; {refused} of them refused"


def _require_disk(stage: Stage) -> SmallDisk:
    if stage.disk is None or stage.disk.is_full() or stage.disk.is_swapped():
        raise NothingToBreak("the disk of the homes was already full or swapped")
    return stage.disk


async def _wait_for_refusals(stage: Stage) -> int:
    """Return how many workers refused to start; they cannot tell while the database is unavailable."""
    with suppress(TimeoutError):
        async with asyncio.timeout(REFUSAL_SECONDS):
            while _count_refusals(stage) < len(WORKERS):  # noqa: ASYNC110 (there is no event to wait for)
                await asyncio.sleep(POLL_SECONDS)
    return _count_refusals(stage)


def _count_refusals(stage: Stage) -> int:
    notes = (each.note for each in stage.stack.statuses if each.name in WORKERS)
    return sum(REFUSAL in note for note in notes)
