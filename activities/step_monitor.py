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
    """Heartbeat with the latest progress until the step ends.

    Missing heartbeats tell Temporal that a worker died, and heartbeats tell an activity that it was
    cancelled.
    """
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


# The event loop holds only weak references to its tasks.
_background_tasks: set[asyncio.Task[None]] = set()


@dataclass(frozen=True)
class StepMonitor:
    """Monitors steps; `stall` is the longest time without progress."""

    board: ProgressBoard
    stall: timedelta

    @asynccontextmanager
    async def watch(self, step: str, workspace_id: WorkspaceId) -> AsyncIterator[Report]:
        """Report the progress of the step to Temporal and to people, and cancel the step if it stalls."""
        async with (
            visible_progress(step, self.board, workspace_id) as show,
            cancel_when_stalled(step, self.stall.total_seconds()) as moved,
        ):

            def report(progress: Progress) -> None:
                moved(progress)
                show(progress)

            yield report


@asynccontextmanager
async def cancel_when_stalled(step: str, seconds: float) -> AsyncIterator[Report]:
    """Cancel the step and raise Transient(ACTION_FAILED) if it reports nothing for this long."""
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
        message = f"The step “{latest}” made no progress for {seconds:.0f} s, so it was cancelled."
        raise Transient(ErrorReason.ACTION_FAILED, message) from error


@asynccontextmanager
async def visible_progress(
    step: str, board: ProgressBoard, workspace_id: WorkspaceId
) -> AsyncIterator[Report]:
    """Heartbeat until the step ends, and show the same progress to people."""
    latest = Progress(step)
    ended = asyncio.Event()
    async with heartbeats(step) as send_heartbeat:

        def report(progress: Progress) -> None:
            nonlocal latest
            latest = progress
            send_heartbeat(progress)

        _run_in_background(_post_progress(board, workspace_id, lambda: latest, ended))
        try:
            yield report
        finally:
            ended.set()


async def _post_progress(
    board: ProgressBoard, workspace_id: WorkspaceId, latest: Callable[[], Progress], ended: asyncio.Event
) -> None:
    while not ended.is_set():
        await board.post(workspace_id, latest())
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERVAL_SECONDS):
                await ended.wait()
    await board.clear(workspace_id)


def _run_in_background(work: Coroutine[None, None, None]) -> None:
    """Start a task that neither heartbeats nor the step wait for."""
    task = asyncio.create_task(work)
    _background_tasks.add(task)
    task.add_done_callback(_background_tasks.discard)
