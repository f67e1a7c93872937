"""A worker stops in the middle of a look at the world, and stores what it saw when that is long over."""

import asyncio
from contextlib import ExitStack
from functools import partial
from random import Random

import psutil

from gameday.faults.chances import wait_for_some
from gameday.faults.modes import Silent
from gameday.faults.processes import stopped
from gameday.faults.stores import require_s3
from gameday.stage.stage import WORKERS, Stage

CHANCE_SECONDS = 4.0
# Temporal gives the work of a silent worker to another one after 10 s.
SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 16.0


async def pause_look(stage: Stage, random: Random) -> str:
    """S3 keeps looks waiting for a moment, so that a worker can be met in one."""
    seconds = random.uniform(SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
    require_s3(stage)
    with ExitStack() as paused:
        with stage.s3.trouble(Silent()):
            looking = await wait_for_some(
                partial(_find_looking, stage), CHANCE_SECONDS, "worker looked for an archive"
            )
            name, pid = random.choice(looking)
            paused.enter_context(stopped([pid]))
        await asyncio.sleep(seconds)
    return f"SIGSTOP of {name} ({pid}) in the middle of a look for {seconds:.1f} s"


async def _find_looking(stage: Stage) -> list[tuple[str, int]]:
    """The workers that wait for an answer of S3 themselves; their storage jobs are other processes."""
    pids = ((name, stage.pid(name)) for name in WORKERS)
    return [(name, pid) for name, pid in pids if pid and _waits_for(stage.s3.held_ports, pid)]


def _waits_for(ports: frozenset[int], pid: int) -> bool:
    process = psutil.Process(pid)
    if process.status() == psutil.STATUS_STOPPED:
        return False
    return any(each.laddr.port in ports for each in process.net_connections("tcp4"))
