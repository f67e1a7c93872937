"""Faults of the supervised parts: kill -9, and a stop in which a process is there but does nothing."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from random import Random

import psutil

from gameday.faults.chances import NothingToBreak
from gameday.stage.stage import Stage

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
