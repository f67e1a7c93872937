"""A fault, its record, and how it finds something to break."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

POLL_SECONDS = 0.1
Found = TypeVar("Found")


class NothingToBreak(Exception):
    """The fault found nothing to break; the message says why."""


@dataclass(frozen=True)
class Fault:
    """`run` breaks something, heals it when it ends or is cancelled, and returns a line for the report."""

    kind: str
    run: Callable[[Random], Awaitable[str]]
    waits: bool = False
    """Whether it breaks nothing before its end."""


@dataclass(frozen=True)
class FaultRecord:
    """A fault that has ended; `at` is seconds on the stage's clock."""

    kind: str
    at: float
    seconds: float
    what: str
    happened: bool = True
    """Whether there was anything to break."""


async def wait_for_any(
    find: Callable[[], Awaitable[list[Found]]], seconds: float, description: str
) -> list[Found]:
    """Poll until `find` returns something; raise NothingToBreak after this many seconds."""
    try:
        async with asyncio.timeout(seconds):
            while not (found := await find()):  # noqa: ASYNC110 (there is no event to wait for)
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise NothingToBreak(f"no {description} in {seconds:.0f} s") from None
    return found
