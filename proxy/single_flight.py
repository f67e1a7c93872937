"""Runs one call per key at a time; concurrent callers share its result."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

# A call that hangs would block everyone who joins it.
MAX_SECONDS = 10.0

Key = TypeVar("Key")
Result = TypeVar("Result")


class SingleFlight(Generic[Key, Result]):
    """Shares calls in progress; a caller that is cancelled does not cancel the call for the others."""

    def __init__(self, max_seconds: float = MAX_SECONDS) -> None:
        self._max_seconds = max_seconds
        self._in_progress: dict[Key, asyncio.Task[Result]] = {}

    async def run(self, key: Key, call: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        task = self._in_progress.get(key)
        if task is None:
            task = asyncio.create_task(self._bounded(call()))
            self._in_progress[key] = task
            task.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(task)

    async def _bounded(self, call: Coroutine[Any, Any, Result]) -> Result:
        async with asyncio.timeout(self._max_seconds):
            return await call

    def forget(self, key: Key) -> None:
        """Let the next caller start a new call: the result in progress may be outdated."""
        self._in_progress.pop(key, None)

    def _end(self, key: Key, task: asyncio.Task[Result]) -> None:
        if self._in_progress.get(key) is task:
            del self._in_progress[key]
        if not task.cancelled():
            # Retrieve the exception, or asyncio would log it if all callers are gone.
            task.exception()
