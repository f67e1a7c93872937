"""The machine comes back with another disk under its homes: empty, or that of another CodeHub."""

import asyncio
from contextlib import suppress
from random import Random

from codehub.adapters.local.root import LocalRoot
from gameday.faults.fault import NothingToBreak
from gameday.faults.processes import stopped
from gameday.stage.stage import WORKERS, Stage

# After each of the workers has refused once.
SHORTEST_SECONDS, LONGEST_SECONDS = 1.0, 5.0
REFUSAL_SECONDS = 20.0
REFUSAL = "exit code 2"
POLL_SECONDS = 0.1


async def exchange_homes(stage: Stage, random: Random) -> str:
    """Whoever calls the homes lost, or works in the other directory, is found out by the checker."""
    seconds = random.uniform(SHORTEST_SECONDS, LONGEST_SECONDS)
    is_prepared = random.choice((True, False))
    disk = stage.disk
    if disk is None or disk.is_full() or disk.is_exchanged():
        raise NothingToBreak("the disk of the homes was full or exchanged already")
    if set(WORKERS) & set(stage.away()):
        # Else they would never get to work.
        raise NothingToBreak("a worker was just coming back")
    # Nobody is in the middle of anything when the disk changes, as when a machine restarts.
    with stopped([pid for name in WORKERS if (pid := stage.pid(name))]):
        for job in await stage.jobs():
            await stage.ground.kill_job(job)
        with disk.exchanged():
            if is_prepared:
                LocalRoot.at(disk.path).prepare()
            await asyncio.gather(*(stage.stack.kill(name) for name in WORKERS))
            refused = await _wait_for_refusals(stage)
            await asyncio.sleep(seconds)
    found = "that of another CodeHub" if is_prepared else "empty"
    return f"the directory of the homes was {found} when the workers restarted; {refused} of them refused"


async def _wait_for_refusals(stage: Stage) -> int:
    """How many workers have ended by themselves; they cannot tell while the database is away."""
    with suppress(TimeoutError):
        async with asyncio.timeout(REFUSAL_SECONDS):
            while _count_refusals(stage) < len(WORKERS):  # noqa: ASYNC110 (the supervisor tells one observer)
                await asyncio.sleep(POLL_SECONDS)
    return _count_refusals(stage)


def _count_refusals(stage: Stage) -> int:
    notes = (each.note for each in stage.stack.statuses if each.name in WORKERS)
    return sum(REFUSAL in note for note in notes)
