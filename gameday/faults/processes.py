"""Faults of the supervised parts: kill -9, and a stop in which a process is there but does nothing."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from random import Random

import psutil

from gameday.faults.fault import NothingToBreak, wait_for_some
from gameday.faults.modes import Silent
from gameday.faults.s3 import require_s3
from gameday.stage.stage import WORKERS, Stage

SHORTEST_STOP_SECONDS = 0.5
LONGEST_STOP_SECONDS = 8.0
KILLED_WHILE_STARTING = 0.25
# On a slow machine all would soon be away at once, and nobody would do anything that could go wrong.
MOST_AWAY = 3
POSTGRES = "postgres"


async def kill_part(stage: Stage, name: str, random: Random) -> str:
    away = stage.away()
    # Killed whenever it is about to be ready, it would never be; killed sometimes, its start is tried too.
    spared = name in away and random.random() > KILLED_WHILE_STARTING
    pid = stage.pid(name)
    if pid is None or spared:
        raise NothingToBreak(f"{name} was just coming back")
    if name not in away and len(away) >= MOST_AWAY:
        raise NothingToBreak(f"{len(away)} parts were away already")
    await stage.stack.kill(name)
    return f"kill -9 of {name} ({pid})"


async def stop_part(stage: Stage, name: str, random: Random) -> str:
    seconds = random.uniform(SHORTEST_STOP_SECONDS, LONGEST_STOP_SECONDS)
    pid = stage.pid(name)
    if pid is None or psutil.Process(pid).status() == psutil.STATUS_STOPPED:
        raise NothingToBreak(f"{name} was not there, or stopped already")
    with stopped(_processes_of(name, pid)):
        await asyncio.sleep(seconds)
    return f"SIGSTOP of {name} ({pid}) for {seconds:.1f} s"


@contextlib.contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """They do nothing for the length of the block; whoever was killed meanwhile stays dead."""
    with contextlib.ExitStack() as held:
        for pid in pids:
            _stop(pid, held)
        yield


def _stop(pid: int, held: contextlib.ExitStack) -> None:
    try:
        # Not the number, which may belong to somebody else by the time it shall go on.
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    held.callback(os.close, handle)
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGSTOP)
    held.callback(_continue, handle)


def _continue(handle: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGCONT)


def _processes_of(name: str, pid: int) -> list[int]:
    """PostgreSQL is many processes; those that a worker has started are not the worker."""
    if name != POSTGRES:
        return [pid]
    try:
        return [pid, *(each.pid for each in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


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
