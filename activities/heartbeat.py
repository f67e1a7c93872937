"""Heartbeats: how Temporal learns that a worker died, and how an activity learns that it was cancelled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

from codehub.ports import Progress, Report

INTERVAL_SECONDS = 1.0


@asynccontextmanager
async def heartbeats(step: str) -> AsyncIterator[Report]:
    """Beat with the latest progress until the step ends."""
    latest = Progress(step)

    def report(progress: Progress) -> None:
        nonlocal latest
        latest = progress

    async def beat() -> None:
        while True:
            activity.heartbeat(latest)
            await asyncio.sleep(INTERVAL_SECONDS)

    beating = asyncio.create_task(beat())
    try:
        yield report
    finally:
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
