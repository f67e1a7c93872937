"""Inject faults at random times, several at once, until the game ends."""

import asyncio
from collections.abc import Callable
from random import Random

import aiohttp
import psutil
from aiodocker import DockerError
from sqlalchemy.exc import DBAPIError

from codehub.db.session import DatabaseUnavailable
from codehub.domain.failures import Failure
from gameday.faults.catalog import weighted_faults
from gameday.faults.fault import Fault, FaultRecord, NothingToBreak
from gameday.stage.stage import Stage

CONCURRENT_FAULTS = 4
SEED_BITS = 64
# Another fault may already have broken the same thing.
ALREADY_BROKEN = (
    DBAPIError,
    DatabaseUnavailable,
    DockerError,
    Failure,
    OSError,
    aiohttp.ClientError,
    psutil.Error,
)

Record = Callable[[FaultRecord], None]


async def inject_faults(
    stage: Stage,
    random: Random,
    until: asyncio.Event,
    record: Record,
    per_second: float,
    *,
    dockerd: bool = False,
) -> None:
    """Inject faults whose kinds and order depend only on `random`; heal all of them at the end."""
    weighted = weighted_faults(stage, dockerd=dockerd)
    faults, weights = [fault for _, fault in weighted], [weight for weight, _ in weighted]
    stopping = asyncio.create_task(until.wait())
    active: set[asyncio.Task[None]] = set()
    try:
        while not await _is_stopping(stopping, random.expovariate(per_second)):
            [fault] = random.choices(faults, weights)
            own_random = Random(random.getrandbits(SEED_BITS))  # noqa: S311 (no secret)
            active = await _wait_for_slot(active, stopping)
            await _wait_while_paused(stage, stopping)
            if not stopping.done():
                active.add(asyncio.create_task(run_fault(stage, fault, own_random, record)))
    finally:
        stopping.cancel()
        for task in active:
            task.cancel()
        # A cancelled fault heals before it ends.
        await asyncio.gather(*active, return_exceptions=True)


async def _is_stopping(stopping: asyncio.Task[bool], seconds: float) -> bool:
    await asyncio.wait({stopping}, timeout=seconds)
    return stopping.done()


async def _wait_while_paused(stage: Stage, stopping: asyncio.Task[bool]) -> None:
    pause_ended = asyncio.create_task(stage.fault_pause.wait_until_over())
    try:
        await asyncio.wait({pause_ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        pause_ended.cancel()


async def _wait_for_slot(
    active: set[asyncio.Task[None]], stopping: asyncio.Task[bool]
) -> set[asyncio.Task[None]]:
    """Wait until another fault may begin and return the active ones; raise what any of them raised."""
    while True:
        for task in active:
            if task.done():
                task.result()
        active = {task for task in active if not task.done()}
        if len(active) < CONCURRENT_FAULTS or stopping.done():
            return active
        await asyncio.wait({*active, stopping}, return_when=asyncio.FIRST_COMPLETED)


async def run_fault(stage: Stage, fault: Fault, random: Random, record: Record) -> None:
    """Run a fault and record whether it broke anything."""
    at = stage.clock()
    what, happened = "cancelled by the end of the game", not fault.waits
    try:
        what, happened = await fault.run(random), True
    except NothingToBreak as error:
        what, happened = str(error), False
    except ALREADY_BROKEN as error:
        what, happened = f"had no effect: {type(error).__name__}", False
    finally:
        record(FaultRecord(fault.kind, at, stage.clock() - at, what, happened))
