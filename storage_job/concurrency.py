"""The two ways in which a job waits: for all of several things, and for file system work in a thread."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


async def together(first: Awaitable[First], second: Awaitable[Second]) -> tuple[First, Second]:
    """Both results; what fails first takes the other one down before it is raised."""
    tasks = asyncio.ensure_future(first), asyncio.ensure_future(second)
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def settled(work: Callable[[], None]) -> None:
    """Run in a thread and wait for its end even if cancelled meanwhile: a thread cannot be stopped."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
