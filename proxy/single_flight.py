"""One question at a time, however many want to know the answer."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

# Whoever joins one that hangs would hang with it: so it ends, and the next one asks anew.
LONGEST_SECONDS = 10.0

Key = TypeVar("Key")
Result = TypeVar("Result")


class SingleFlight(Generic[Key, Result]):
    """Whoever asks while an answer is on its way gets that one; who goes away takes it from nobody."""

    def __init__(self, longest_seconds: float = LONGEST_SECONDS) -> None:
        self._longest_seconds = longest_seconds
        self._under_way: dict[Key, asyncio.Task[Result]] = {}

    async def run(self, key: Key, ask: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._bounded(ask()))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(task)

    async def _bounded(self, answer: Coroutine[Any, Any, Result]) -> Result:
        async with asyncio.timeout(self._longest_seconds):
            return await answer

    def forget(self, key: Key) -> None:
        """What is on its way may be outdated: the next one asks anew."""
        self._under_way.pop(key, None)

    def _end(self, key: Key, task: asyncio.Task[Result]) -> None:
        if self._under_way.get(key) is task:
            del self._under_way[key]
        if not task.cancelled():
            # Looked at, so that nobody is told of an error that all who asked have left behind.
            task.exception()
