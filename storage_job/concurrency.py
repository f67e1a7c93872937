"""Run tar, threads and coroutines side by side, and leave none of them behind."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from storage_job.tar_process import TarProcess

First = TypeVar("First")
Second = TypeVar("Second")
Result = TypeVar("Result")


class Pipeline:
    """Tar and the threads that serve its pipes; use as `with`, and neither outlives the block."""

    def __init__(self, *processes: TarProcess) -> None:
        self._processes = processes
        self._threads = ThreadPoolExecutor()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        # The threads end because their pipes have ended; only then may the pipes be closed.
        self._threads.shutdown()
        for process in self._processes:
            process.close()

    def in_thread(self, work: Callable[..., Result], *arguments: object) -> "asyncio.Future[Result]":
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)


async def run_both(first: Awaitable[First], second: Awaitable[Second]) -> tuple[First, Second]:
    """Return both results; if one fails, cancel the other before raising."""
    tasks = asyncio.ensure_future(first), asyncio.ensure_future(second)
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def run_to_completion(work: Callable[[], None]) -> None:
    """Run in a thread and wait for its end even when cancelled: a thread cannot be stopped."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
