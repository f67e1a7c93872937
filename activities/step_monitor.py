"""Heartbeats and progress of a running step."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity

from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason
from codehub.ports import Progress, ProgressBoard, Report

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


# The event loop itself holds its tasks only weakly.
_showing: set[asyncio.Task[None]] = set()


@dataclass(frozen=True)
class StepMonitor:
    """Watches over steps; `stall` is how long one may go without progress."""

    board: ProgressBoard
    stall: timedelta

    @asynccontextmanager
    async def watch(self, step: str, workspace_id: WorkspaceId) -> AsyncIterator[Report]:
        """Show the step's progress to Temporal and to people, and end the step if it makes none."""
        async with (
            visible_progress(step, self.board, workspace_id) as show,
            ended_when_stalled(step, self.stall.total_seconds()) as moved,
        ):

            def report(progress: Progress) -> None:
                moved(progress)
                show(progress)

            yield report


@asynccontextmanager
async def ended_when_stalled(step: str, seconds: float) -> AsyncIterator[Report]:
    """Cancel the step and raise Transient(ACTION_FAILED) when nothing has been reported for so long."""
    clock = asyncio.get_running_loop().time
    latest = step
    try:
        async with asyncio.timeout(seconds) as limit:

            def report(progress: Progress) -> None:
                nonlocal latest
                latest = progress.step
                if not limit.expired():
                    limit.reschedule(clock() + seconds)

            yield report
    except TimeoutError as error:
        if not limit.expired():
            raise
        message = f"Nothing moved for {seconds:.0f} s at the step “{latest}”, so it was ended."
        raise Transient(ErrorReason.ACTION_FAILED, message) from error


@asynccontextmanager
async def visible_progress(
    step: str, board: ProgressBoard, workspace_id: WorkspaceId
) -> AsyncIterator[Report]:
    """Beat until the step ends, and show the same progress to people."""
    latest = Progress(step)
    ended = asyncio.Event()
    async with heartbeats(step) as beat_with:

        def report(progress: Progress) -> None:
            nonlocal latest
            latest = progress
            beat_with(progress)

        _run_beside(_show(board, workspace_id, lambda: latest, ended))
        try:
            yield report
        finally:
            ended.set()


async def _show(
    board: ProgressBoard, workspace_id: WorkspaceId, latest: Callable[[], Progress], ended: asyncio.Event
) -> None:
    while not ended.is_set():
        await board.post(workspace_id, latest())
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERVAL_SECONDS):
                await ended.wait()
    await board.clear(workspace_id)


def _run_beside(showing: Coroutine[None, None, None]) -> None:
    """Neither beats nor the step wait for it, not even for its end."""
    task = asyncio.create_task(showing)
    _showing.add(task)
    task.add_done_callback(_showing.discard)
