"""Faults of what keeps data: S3 in every bad mood, a full disk, a relay that loses its database session."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from codehub.db.session import DatabaseUnavailable
from codehub.domain.states import Operation
from gameday.checks.rows import Row, read_rows
from gameday.checks.watcher import is_uploading
from gameday.faults.fault import NothingToBreak, wait_for_some
from gameday.faults.modes import Answering, Away, Cutting, Mode, Silent, Slow
from gameday.stage.stage import Stage

SHORTEST_S3_SECONDS, LONGEST_S3_SECONDS = 1.0, 6.0
SHORTEST_AWAY_SECONDS, LONGEST_AWAY_SECONDS = 50.0, 120.0
# More than the watcher's patience, with what other faults still take from it.
CALM_SECONDS = 120.0
POLL_SECONDS = 0.5
ARCHIVING_SECONDS = 10.0
SHORTEST_FULL_SECONDS, LONGEST_FULL_SECONDS = 1.0, 5.0
SLOWEST, FASTEST = 2_000, 200_000
# From the middle of a request's head to somewhere in the second part of an upload.
EARLIEST_CUT_BYTES, LATEST_CUT_BYTES = 100, 12_000_000

# By its name and not by the number of its lock, which is the worker's own business.
END_RELAY = text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity JOIN pg_locks USING (pid) "
    "WHERE application_name = 'codehub-relay' AND locktype = 'advisory' AND granted"
)


@dataclass(frozen=True)
class Mood:
    """One that S3 can be in, with the words for it."""

    mode: Mode
    words: str


def _slow(random: Random) -> Mood:
    speed = random.randint(SLOWEST, FASTEST)
    return Mood(Slow(speed), f"as slow as {speed} bytes a second")


def _cut(random: Random) -> Mood:
    # Most archives are small, so most cuts come early.
    size = int(EARLIEST_CUT_BYTES * (LATEST_CUT_BYTES / EARLIEST_CUT_BYTES) ** random.random())
    return Mood(Cutting(size), f"cut off after {size} bytes")


MOODS: Mapping[str, Callable[[Random], Mood]] = {
    "s3-500": lambda _random: Mood(Answering(500), "answering 500"),
    "s3-503": lambda _random: Mood(Answering(503), "answering 503"),
    "s3-slow": _slow,
    "s3-cut": _cut,
    "s3-silent": lambda _random: Mood(Silent(), "silent"),
}


async def trouble_s3(stage: Stage, kind: str, random: Random) -> str:
    mood = MOODS[kind](random)
    seconds = random.uniform(SHORTEST_S3_SECONDS, LONGEST_S3_SECONDS)
    require_s3(stage)
    with stage.s3.trouble(mood.mode):
        await asyncio.sleep(seconds)
    return f"S3 was {mood.words} for {seconds:.1f} s"


async def take_s3_away(stage: Stage, random: Random) -> str:
    """For minutes, in the middle of ARCHIVING; people start and stop meanwhile what is on the disk."""
    seconds = random.uniform(SHORTEST_AWAY_SECONDS, LONGEST_AWAY_SECONDS)
    require_s3(stage)

    async def archiving() -> list[Row]:
        rows = await read_rows(stage.database)
        return [row for row in rows if row.operation is Operation.ARCHIVING]

    found = await wait_for_some(archiving, ARCHIVING_SECONDS, "workspace was being archived")
    with stage.s3.trouble(Away()):
        await asyncio.sleep(seconds)
        with stage.calm.kept():
            await _wait_until_nobody_is_locked_out(stage)
    return f"S3 was away for {seconds:.1f} s and longer while {len(found)} workspaces were being archived"


async def _wait_until_nobody_is_locked_out(stage: Stage) -> None:
    """The watcher judges; this only leaves it the time to see whether claims are given back."""
    with suppress(TimeoutError, DatabaseUnavailable, DBAPIError):
        async with asyncio.timeout(CALM_SECONDS):
            await stage.wait_ready()
            while any(is_uploading(row) for row in await read_rows(stage.database)):  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)


def require_s3(stage: Stage) -> None:
    """A shorter trouble would bring it back for a while."""
    if isinstance(stage.s3.mode, Away):
        raise NothingToBreak("S3 was away already")


async def fill_disk(stage: Stage, random: Random) -> str:
    seconds = random.uniform(SHORTEST_FULL_SECONDS, LONGEST_FULL_SECONDS)
    if stage.disk is None or stage.disk.is_full() or stage.disk.is_exchanged():
        raise NothingToBreak("the disk of the homes was full or exchanged already")
    with stage.disk.full():
        await asyncio.sleep(seconds)
    return f"the disk of the homes was full for {seconds:.1f} s"


async def end_relay(stage: Stage, _random: Random) -> str:
    async with stage.database.transaction() as session:
        ended = await session.scalar(END_RELAY)
    if not ended:
        raise NothingToBreak("no relay was elected")
    return "ended the database session of the relay that was elected"
