"""Wakes workflows beside the answer: a caller never waits for Temporal, and a sweep heals a lost wake."""

import asyncio

from codehub.domain.conditions import WorkspaceId
from codehub.ports import Convergence


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
