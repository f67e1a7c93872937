"""Progress that people can watch while a step runs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress

from activities.heartbeat import heartbeats
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Progress, ProgressBoard, Report

INTERVAL_SECONDS = 1.0

# The event loop itself holds its tasks only weakly.
_showing: set[asyncio.Task[None]] = set()


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
