"""Faults that find nothing to break: they are told apart from those that happened."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

LOOK_SECONDS = 0.1
Found = TypeVar("Found")


class NothingToBreak(Exception):
    """There is nothing of the kind right now; the message says so in a line."""


async def wait_for_some(look: Callable[[], Awaitable[list[Found]]], seconds: float, what: str) -> list[Found]:
    """Look again and again for what does not live long."""
    try:
        async with asyncio.timeout(seconds):
            while not (found := await look()):  # noqa: ASYNC110 (nobody announces it)
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise NothingToBreak(f"no {what} in {seconds:.0f} s") from None
    return found
