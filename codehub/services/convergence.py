"""Waking the workflow of a workspace, waiting until it is settled, and reporting its progress."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

from codehub.db.session import Database
from codehub.db.views import WorkspaceView, load_view
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Convergence, Progress, ProgressBoard

FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 1.0
PAUSE_FACTOR = 1.5


# A running step reports its progress every second. After this much silence none is running: the operation
# waits for a worker, or for its next attempt.
SILENCE = timedelta(seconds=5)
WAITING = Progress("waiting for its turn", unit="steps")


class Waker:
    """Wakes workflows in the background: callers never wait for Temporal, and a sweep heals a lost wake."""

    def __init__(self, convergence: Convergence) -> None:
        self._convergence = convergence
        self._waking: set[asyncio.Task[None]] = set()

    def wake(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        # A reference keeps the task from being garbage-collected.
        task = asyncio.create_task(self._convergence.wake(workspace_id, owner_id))
        self._waking.add(task)
        task.add_done_callback(self._waking.discard)

    async def close(self) -> None:
        """Wait for the wakes in progress; each has a time limit."""
        if self._waking:
            await asyncio.wait(self._waking)


async def wait_until_settled(
    database: Database,
    workspace_id: WorkspaceId,
    *,
    timeout: timedelta,  # noqa: ASYNC109
    pause_for: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> WorkspaceView | None:
    """Return the workspace once it is settled or the time is over; None if it is gone."""
    clock = asyncio.get_running_loop()
    deadline = clock.time() + timeout.total_seconds()
    pause = FIRST_PAUSE_SECONDS
    while True:
        view = await _load(database, workspace_id)
        remaining = deadline - clock.time()
        if view is None or view.lifecycle.is_settled or remaining <= 0:
            return view
        await pause_for(min(pause, remaining))
        pause = next_pause(pause)


def next_pause(pause: float) -> float:
    """Return the next pause: short at first, for quick operations, and longer later."""
    return min(pause * PAUSE_FACTOR, MAX_PAUSE_SECONDS)


async def _load(database: Database, workspace_id: WorkspaceId) -> WorkspaceView | None:
    """Load the workspace in its own transaction, so that none is open during a pause."""
    async with database.transaction() as session:
        return await load_view(session, workspace_id)


async def progress_since(
    board: ProgressBoard, workspace_id: WorkspaceId, since: datetime | None, now: datetime
) -> Progress | None:
    """Return the progress of the operation that began then; None between steps or if unavailable."""
    return shown_progress(await board.read([workspace_id]), workspace_id, since, now)


def shown_progress(
    posted: Mapping[WorkspaceId, Progress] | None,
    workspace_id: WorkspaceId,
    since: datetime | None,
    now: datetime,
) -> Progress | None:
    """Return the posted progress; without one, an operation that began a while ago is waiting."""
    if posted is None:
        return None
    waits = since is not None and now - since > SILENCE
    return posted.get(workspace_id, WAITING if waits else None)
