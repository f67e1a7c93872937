"""Faults of S3: errors, slow and cut connections, stalls, and outages of minutes."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from sqlalchemy.exc import DBAPIError

from codehub.db.session import DatabaseUnavailable
from codehub.domain.states import Operation
from gameday.checks.rows import Row, read_rows
from gameday.faults.fault import NothingToBreak, wait_for_any
from gameday.faults.modes import CutConnections, Down, ErrorResponses, Mode, Slow, Stalled
from gameday.stage.stage import Stage

SHORTEST_SECONDS, LONGEST_SECONDS = 1.0, 6.0
SHORTEST_DOWN_SECONDS, LONGEST_DOWN_SECONDS = 50.0, 120.0
# More than the watcher allows a claim, plus the time that other active faults take from it.
PAUSE_SECONDS = 120.0
POLL_SECONDS = 0.5
ARCHIVING_SECONDS = 10.0
SLOWEST, FASTEST = 2_000, 200_000
# From the middle of a request's headers to the second part of an upload.
EARLIEST_CUT_BYTES, LATEST_CUT_BYTES = 100, 12_000_000


@dataclass(frozen=True)
class S3Fault:
    """What the fault proxy does, and how the report describes it."""

    mode: Mode
    description: str


def _slow(random: Random) -> S3Fault:
    speed = random.randint(SLOWEST, FASTEST)
    return S3Fault(Slow(speed), f"slowed down to {speed} bytes per second")


def _cut(random: Random) -> S3Fault:
    # Most archives are small, so most cuts come early.
    size = int(EARLIEST_CUT_BYTES * (LATEST_CUT_BYTES / EARLIEST_CUT_BYTES) ** random.random())
    return S3Fault(CutConnections(size), f"cut off after {size} bytes")


S3_FAULTS: Mapping[str, Callable[[Random], S3Fault]] = {
    "s3-500": lambda _random: S3Fault(ErrorResponses(500), "responding with 500"),
    "s3-503": lambda _random: S3Fault(ErrorResponses(503), "responding with 503"),
    "s3-slow": _slow,
    "s3-cut": _cut,
    "s3-stalled": lambda _random: S3Fault(Stalled(), "stalled"),
}


async def disturb_s3(stage: Stage, kind: str, random: Random) -> str:
    fault = S3_FAULTS[kind](random)
    seconds = random.uniform(SHORTEST_SECONDS, LONGEST_SECONDS)
    require_s3(stage)
    with stage.s3.inject(fault.mode):
        await asyncio.sleep(seconds)
    return f"S3 was {fault.description} for {seconds:.1f} s"


async def take_s3_down(stage: Stage, random: Random) -> str:
    """Take S3 down for minutes during ARCHIVING; people can still use what is on disk."""
    seconds = random.uniform(SHORTEST_DOWN_SECONDS, LONGEST_DOWN_SECONDS)
    require_s3(stage)

    async def archiving() -> list[Row]:
        rows = await read_rows(stage.database)
        return [row for row in rows if row.operation is Operation.ARCHIVING]

    found = await wait_for_any(archiving, ARCHIVING_SECONDS, "workspace was being archived")
    with stage.s3.inject(Down()):
        await asyncio.sleep(seconds)
        with stage.fault_pause.hold():
            await _wait_until_claims_are_released(stage)
    return f"S3 was down for at least {seconds:.1f} s while {len(found)} workspaces were being archived"


async def _wait_until_claims_are_released(stage: Stage) -> None:
    """Give the watcher time to check that uploads release their claims."""
    with suppress(TimeoutError, DatabaseUnavailable, DBAPIError):
        async with asyncio.timeout(PAUSE_SECONDS):
            await stage.wait_ready()
            while any(row.is_uploading for row in await read_rows(stage.database)):  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)


def require_s3(stage: Stage) -> None:
    """Raise NothingToBreak while S3 is down: a shorter fault would bring it back for a moment."""
    if isinstance(stage.s3.mode, Down):
        raise NothingToBreak("S3 was already down")
