"""Wait for a condition with a deadline: the only way in which tests wait."""

import asyncio
import time
from collections.abc import Awaitable, Callable

DEADLINE_SECONDS = 120
POLL_SECONDS = 0.025


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Return as soon as the condition holds; fail with `what` after the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not await condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {DEADLINE_SECONDS} s: {what}")
        await asyncio.sleep(POLL_SECONDS)
