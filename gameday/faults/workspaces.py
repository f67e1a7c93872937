"""Faults of what runs for a workspace: its storage job, the job's tar process, or its IDE ends."""

import asyncio
from contextlib import suppress
from random import Random

import psutil

from gameday.faults.fault import NothingToBreak, wait_for_any
from gameday.stage.stage import Stage

# Jobs are short, so wait for one.
JOB_SECONDS = 6.0
LONGEST_DELAY_SECONDS = 0.5
# For a small home, tar runs for milliseconds.
TAR = "tar"
TAR_POLL_SECONDS = 0.01


async def kill_job(stage: Stage, random: Random) -> str:
    # Do not always kill it at its very beginning.
    delay = random.uniform(0, LONGEST_DELAY_SECONDS)
    job = await choose_job(stage, random)
    await asyncio.sleep(delay)
    if job not in await stage.jobs():
        raise NothingToBreak(f"the storage job {job} had already ended")
    await stage.backend.kill_job(job)
    return f"kill -9 of the storage job {job}, {delay:.1f} s after it was found"


async def kill_tar(stage: Stage, random: Random) -> str:
    """Kill the tar process of a job, as the kernel does when memory runs out; the job must notice."""
    job = await choose_job(stage, random)
    with suppress(psutil.NoSuchProcess):
        while pid := await stage.backend.job_pid(job):
            if tar := await asyncio.to_thread(_find_tar, pid):
                tar.kill()
                return f"kill -9 of the {TAR} process of the storage job {job}"
            await asyncio.sleep(TAR_POLL_SECONDS)
    raise NothingToBreak(f"the storage job {job} had already ended")


async def choose_job(stage: Stage, random: Random) -> str:
    return random.choice(sorted(await wait_for_any(stage.jobs, JOB_SECONDS, "storage job ran")))


def _find_tar(pid: int) -> psutil.Process | None:
    """Return the running tar process; one that has ended stays a zombie until the job waits for it."""
    family = psutil.Process(pid).children(recursive=True)
    running = (each for each in family if each.status() != psutil.STATUS_ZOMBIE)
    return next((each for each in running if each.name() == TAR), None)


async def kill_instance(stage: Stage, random: Random) -> str:
    workspace_id, name = await choose_instance(stage, random)
    await stage.backend.kill_instance(name)
    return f"kill -9 of the IDE {name} of {workspace_id}"


async def remove_instance(stage: Stage, random: Random) -> str:
    workspace_id, name = await choose_instance(stage, random)
    await stage.backend.remove_instance(name)
    return f"removal of the IDE {name} of {workspace_id} by somebody else"


async def choose_instance(stage: Stage, random: Random) -> tuple[str, str]:
    found = await stage.all_instances()
    pairs = [(workspace_id, name) for workspace_id, names in found.items() for name in names]
    if not pairs:
        raise NothingToBreak("no IDE was running")
    return random.choice(sorted(pairs))
