"""Faults of CodeHub's processes and servers: kill, stop, pause in an observation, lose a session."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random

import psutil
from sqlalchemy import text

from gameday.faults.fault import NothingToBreak, wait_for_any
from gameday.faults.modes import Stalled
from gameday.faults.s3 import require_s3
from gameday.stage.stage import WORKERS, Stage

SHORTEST_STOP_SECONDS = 0.5
LONGEST_STOP_SECONDS = 8.0
KILLED_WHILE_STARTING = 0.25
# On a slow machine, more would soon make everything unavailable, and nothing would happen any more.
MOST_UNAVAILABLE = 3
POSTGRES = "postgres"
OBSERVATION_SECONDS = 4.0
# Temporal reassigns the work of a silent worker after 10 s.
SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 16.0
# Find the session by its name; the number of its lock is an internal detail of the worker.
END_RELAY_SESSION = text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity JOIN pg_locks USING (pid) "
    "WHERE application_name = 'codehub-relay' AND locktype = 'advisory' AND granted"
)


async def kill_part(stage: Stage, name: str, random: Random) -> str:
    unavailable = stage.unavailable()
    # A part that is killed during every start never becomes ready; one that is killed sometimes is a test.
    spared = name in unavailable and random.random() > KILLED_WHILE_STARTING
    pid = stage.pid(name)
    if pid is None or spared:
        raise NothingToBreak(f"{name} was starting")
    if name not in unavailable and len(unavailable) >= MOST_UNAVAILABLE:
        raise NothingToBreak(f"{len(unavailable)} parts were already unavailable")
    await stage.stack.kill(name)
    return f"kill -9 of {name} ({pid})"


async def stop_part(stage: Stage, name: str, random: Random) -> str:
    seconds = random.uniform(SHORTEST_STOP_SECONDS, LONGEST_STOP_SECONDS)
    pid = stage.pid(name)
    if pid is None or psutil.Process(pid).status() == psutil.STATUS_STOPPED:
        raise NothingToBreak(f"{name} did not run or was already stopped")
    with stopped(_process_ids(name, pid)):
        await asyncio.sleep(seconds)
    return f"SIGSTOP of {name} ({pid}) for {seconds:.1f} s"


async def pause_observation(stage: Stage, random: Random) -> str:
    """Stop a worker during an observation, so that it stores an outdated result later.

    S3 stalls for a moment, because observations are otherwise too short to catch.
    """
    seconds = random.uniform(SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
    require_s3(stage)
    with contextlib.ExitStack() as paused:
        with stage.s3.inject(Stalled()):
            observing = await wait_for_any(
                partial(_find_observing, stage), OBSERVATION_SECONDS, "worker asked S3 for an archive"
            )
            name, pid = random.choice(observing)
            paused.enter_context(stopped([pid]))
        await asyncio.sleep(seconds)
    return f"SIGSTOP of {name} ({pid}) during an observation for {seconds:.1f} s"


async def end_relay_session(stage: Stage, _random: Random) -> str:
    async with stage.database.transaction() as session:
        ended = await session.scalar(END_RELAY_SESSION)
    if not ended:
        raise NothingToBreak("no event relay was elected")
    return "ended the database session of the elected event relay"


@contextlib.contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """Stop these processes during the block."""
    with contextlib.ExitStack() as cleanup:
        for pid in pids:
            _stop(pid, cleanup)
        yield


def _stop(pid: int, cleanup: contextlib.ExitStack) -> None:
    try:
        # Not by the pid, which may belong to another process when this one continues.
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    cleanup.callback(os.close, handle)
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGSTOP)
    cleanup.callback(_continue, handle)


def _continue(handle: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGCONT)


def _process_ids(name: str, pid: int) -> list[int]:
    """Return all processes of PostgreSQL; other parts have one, not counting the jobs of a worker."""
    if name != POSTGRES:
        return [pid]
    try:
        return [pid, *(each.pid for each in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


async def _find_observing(stage: Stage) -> list[tuple[str, int]]:
    """Return the workers that wait for S3 themselves; their storage jobs are other processes."""
    pids = ((name, stage.pid(name)) for name in WORKERS)
    return [(name, pid) for name, pid in pids if pid and _waits_for(stage.s3.stalled_ports, pid)]


def _waits_for(ports: frozenset[int], pid: int) -> bool:
    process = psutil.Process(pid)
    if process.status() == psutil.STATUS_STOPPED:
        return False
    return any(each.laddr.port in ports for each in process.net_connections("tcp4"))
