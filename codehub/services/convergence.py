"""Wakes workflows beside the answer: a caller never waits for Temporal, and a sweep heals a lost wake."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

from codehub.db.session import Database
from codehub.db.views import WorkspaceView, load_view
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Convergence, Progress, ProgressBoard


class Waker:
    """Holds the wakes under way, which would be collected as garbage otherwise."""

    def __init__(self, convergence: Convergence) -> None:
        self._convergence = convergence
        self._waking: set[asyncio.Task[None]] = set()

    def wake(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        task = asyncio.create_task(self._convergence.wake(workspace_id, owner_id))
        self._waking.add(task)
        task.add_done_callback(self._waking.discard)

    async def close(self) -> None:
        """Let those under way end; each has its own time limit."""
        if self._waking:
            await asyncio.wait(self._waking)


FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0
PAUSE_FACTOR = 1.5


async def wait_until_settled(
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
        if view is None or view.lifecycle.is_settled or remaining <= 0:
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


# A step that runs posts its progress every second, so this much silence means that none runs: it waits for a
# free slot, or for its next attempt.
SILENCE = timedelta(seconds=5)
WAITING = Progress("waiting for its turn", unit="steps")


async def progress_since(
    board: ProgressBoard, workspace_id: WorkspaceId, since: datetime | None, now: datetime
) -> Progress | None:
    """How far the operation that began then is; None between two steps, or while the board is unavailable."""
    return shown_progress(await board.read([workspace_id]), workspace_id, since, now)


def shown_progress(
    posted: Mapping[WorkspaceId, Progress] | None,
    workspace_id: WorkspaceId,
    since: datetime | None,
    now: datetime,
) -> Progress | None:
    """What was posted; if nothing was, that an operation begun a while ago waits for its turn."""
    if posted is None:
        return None
    waits = since is not None and now - since > SILENCE
    return posted.get(workspace_id, WAITING if waits else None)
