"""Wait for a condition with a deadline: the only way in which tests wait."""

import asyncio
import time
from collections.abc import Awaitable, Callable

DEADLINE_SECONDS = 120
# Back off: a check often queries a database, and frequent checks would slow down the test itself.
POLL_SECONDS = 0.02
POLL_GROWTH = 1.25
MAX_POLL_SECONDS = 0.25


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Return as soon as the condition holds; fail with `what` after the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    pause = POLL_SECONDS
    while not await condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {DEADLINE_SECONDS} s: {what}")
        await asyncio.sleep(pause)
        pause = min(pause * POLL_GROWTH, MAX_POLL_SECONDS)
