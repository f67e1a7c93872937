"""Breaks things at random times, a few at a time, until told to stop."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import aiohttp
import psutil
from aiodocker import DockerError
from sqlalchemy.exc import DBAPIError

from codehub.db.session import DatabaseUnavailable
from gameday.faults.catalog import Fault, faults_of
from gameday.faults.fault import NothingToBreak
from gameday.stage.stage import Stage

AT_ONCE = 4
SEED_BITS = 64
# What a fault would break may be broken already.
OTHERS_WERE_QUICKER = (
    DBAPIError,
    DatabaseUnavailable,
    DockerError,
    OSError,
    aiohttp.ClientError,
    psutil.Error,
)


@dataclass(frozen=True)
class FaultRecord:
    """A fault that is over; `at` is seconds on the stage's clock."""

    kind: str
    at: float
    seconds: float
    what: str
    happened: bool = True
    """Whether there was anything to break."""


Note = Callable[[FaultRecord], None]


async def break_things(
    stage: Stage,
    random: Random,
    until: asyncio.Event,
    note: Note,
    per_second: float,
    *,
    dockerd: bool = False,
) -> None:
    """What is broken, and in which order, depends on `random` alone; nothing stays broken afterwards."""
    weighted = faults_of(stage, dockerd=dockerd)
    faults, weights = [fault for _, fault in weighted], [weight for weight, _ in weighted]
    stopping = asyncio.create_task(until.wait())
    going_on: set[asyncio.Task[None]] = set()
    try:
        while not await _is_told_to_stop(stopping, random.expovariate(per_second)):
            [fault] = random.choices(faults, weights)
            own_random = Random(random.getrandbits(SEED_BITS))  # noqa: S311 (nothing secret about it)
            going_on = await _make_room(going_on, stopping)
            await _wait_for_weather(stage, stopping)
            if not stopping.done():
                going_on.add(asyncio.create_task(run_fault(stage, fault, own_random, note)))
    finally:
        stopping.cancel()
        for task in going_on:
            task.cancel()
        # Each heals before it ends.
        await asyncio.gather(*going_on, return_exceptions=True)


async def _is_told_to_stop(stopping: asyncio.Task[bool], seconds: float) -> bool:
    await asyncio.wait({stopping}, timeout=seconds)
    return stopping.done()


async def _wait_for_weather(stage: Stage, stopping: asyncio.Task[bool]) -> None:
    """Return when calm is over, or when told to stop."""
    over = asyncio.create_task(stage.calm.wait_over())
    try:
        await asyncio.wait({over, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        over.cancel()


async def _make_room(
    going_on: set[asyncio.Task[None]], stopping: asyncio.Task[bool]
) -> set[asyncio.Task[None]]:
    """Those that still go on, once there are few enough of them; raise what one of them has raised."""
    while True:
        for task in going_on:
            if task.done():
                task.result()
        going_on = {task for task in going_on if not task.done()}
        if len(going_on) < AT_ONCE or stopping.done():
            return going_on
        await asyncio.wait({*going_on, stopping}, return_when=asyncio.FIRST_COMPLETED)


async def run_fault(stage: Stage, fault: Fault, random: Random, note: Note) -> None:
    """Break something, and note whether there was anything to break."""
    at = stage.clock()
    what, happened = "cut short by the end of the game", not fault.waits
    try:
        what, happened = await fault.run(random), True
    except NothingToBreak as error:
        what, happened = str(error), False
    except OTHERS_WERE_QUICKER as error:
        what, happened = f"came to nothing: {type(error).__name__}", False
    finally:
        note(FaultRecord(fault.kind, at, stage.clock() - at, what, happened))
