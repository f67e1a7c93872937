"""Faults of what runs for workspaces: a storage job or an IDE that ends in the middle."""

import asyncio
from contextlib import suppress
from random import Random

import psutil

from gameday.faults.fault import NothingToBreak, wait_for_some
from gameday.stage.stage import Stage

# Jobs are short: a chance to meet one has to be waited for.
JOB_SECONDS = 6.0
LONGEST_DELAY_SECONDS = 0.5
# What a job runs to read and write a home; it takes milliseconds for a small one.
HELPER = "tar"
HELPER_LOOK_SECONDS = 0.01


async def kill_job(stage: Stage, random: Random) -> str:
    # Not always at its very beginning.
    delay = random.uniform(0, LONGEST_DELAY_SECONDS)
    job = random.choice(sorted(await wait_for_some(stage.jobs, JOB_SECONDS, "storage job ran")))
    await asyncio.sleep(delay)
    if job not in await stage.jobs():
        raise NothingToBreak(f"the storage job {job} was quicker")
    await stage.ground.kill_job(job)
    return f"kill -9 of the storage job {job}, {delay:.1f} s after it was seen"


async def kill_helper(stage: Stage, random: Random) -> str:
    """As a kernel that runs out of memory does; the job itself lives on, and must notice."""
    job = random.choice(sorted(await wait_for_some(stage.jobs, JOB_SECONDS, "storage job ran")))
    with suppress(psutil.NoSuchProcess):
        while pid := await stage.ground.pid_of_job(job):
            if helper := await asyncio.to_thread(_helper_of, pid):
                helper.kill()
                return f"kill -9 of the {HELPER} of the storage job {job}"
            await asyncio.sleep(HELPER_LOOK_SECONDS)
    raise NothingToBreak(f"the storage job {job} was quicker")


def _helper_of(pid: int) -> psutil.Process | None:
    """One that has ended is still there until the job has asked for its status."""
    family = psutil.Process(pid).children(recursive=True)
    running = (each for each in family if each.status() != psutil.STATUS_ZOMBIE)
    return next((each for each in running if each.name() == HELPER), None)


async def kill_instance(stage: Stage, random: Random) -> str:
    workspace_id, name = await _choose_instance(stage, random)
    await stage.ground.kill_instance(name)
    return f"kill -9 of the IDE {name} of {workspace_id}"


async def remove_instance(stage: Stage, random: Random) -> str:
    workspace_id, name = await _choose_instance(stage, random)
    await stage.ground.remove_instance(name)
    return f"docker rm -f of the IDE {name} of {workspace_id}"


async def _choose_instance(stage: Stage, random: Random) -> tuple[str, str]:
    found = await stage.all_instances()
    pairs = [(workspace_id, name) for workspace_id, names in found.items() for name in names]
    if not pairs:
        raise NothingToBreak("no IDE ran")
    return random.choice(sorted(pairs))
