"""Waiting until a workspace is where it should be."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from codehub.db.session import Database
from codehub.db.views import WorkspaceView, load_view
from codehub.domain.conditions import WorkspaceId

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0
PAUSE_FACTOR = 1.5


async def wait_converged(
    database: Database,
    workspace_id: WorkspaceId,
    *,
    timeout: timedelta,  # noqa: ASYNC109
    pause_for: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> WorkspaceView | None:
    """Return the workspace once it is settled, or when the time is up; None if it is gone."""
    clock = asyncio.get_running_loop()
    deadline = clock.time() + timeout.total_seconds()
    pause = FIRST_PAUSE_SECONDS
    while True:
        view = await _load(database, workspace_id)
        remaining = deadline - clock.time()
        if view is None or view.standing.is_settled or remaining <= 0:
            return view
        await pause_for(min(pause, remaining))
        pause = next_pause(pause)


def next_pause(pause: float) -> float:
    """Quick at first, for what takes a moment; gentle later, for what takes minutes."""
    return min(pause * PAUSE_FACTOR, LONGEST_PAUSE_SECONDS)


async def _load(database: Database, workspace_id: WorkspaceId) -> WorkspaceView | None:
    """In a transaction of its own: none is open during a pause."""
    async with database.transaction() as session:
        return await load_view(session, workspace_id)
