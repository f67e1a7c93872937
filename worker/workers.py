"""Several Temporal workers in one process: they start together and end together."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from temporalio.worker import Worker


class Workers:
    """One worker for each task queue."""

    def __init__(self, members: Sequence[Worker]) -> None:
        self._members = members
        self._running = AsyncExitStack()

    async def run(self) -> None:
        """Run until they are shut down; a fatal error of one ends all and is raised."""
        async with asyncio.TaskGroup() as tasks:
            for each in self._members:
                tasks.create_task(each.run())

    async def shutdown(self) -> None:
        """Return once none takes work any more and all steps have ended."""
        await asyncio.gather(*(each.shutdown() for each in self._members))

    async def __aenter__(self) -> Self:
        for each in self._members:
            await self._running.enter_async_context(each)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.push_async_callback(self.shutdown)
        await self._running.__aexit__(kind, error, traceback)
