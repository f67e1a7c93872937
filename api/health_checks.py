"""The services behind the API: whether each answers, and which version it is."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from codehub.db.session import DatabaseUnavailable
from codehub.domain.failures import Failure

DEADLINE_SECONDS = 2.0
UNAVAILABLE = (DatabaseUnavailable, SQLAlchemyError, Failure, OSError, TimeoutError)


@dataclass(frozen=True)
class Dependency:
    """One service; `ask` returns its version, and raises if it does not answer."""

    name: str
    required: bool
    ask: Callable[[], Awaitable[str]]


@dataclass(frozen=True)
class Health:
    """What one service answered. The error is a class of error, not its text: texts may hold addresses."""

    name: str
    required: bool
    healthy: bool
    version: str | None
    error: str | None
    milliseconds: float


async def check_all(dependencies: Sequence[Dependency], deadline: float = DEADLINE_SECONDS) -> list[Health]:
    """Ask all at once; none may take longer than the deadline."""
    return list(await asyncio.gather(*(_check(dependency, deadline) for dependency in dependencies)))


async def _check(dependency: Dependency, deadline: float) -> Health:
    began = time.perf_counter()
    version, error = None, None
    try:
        async with asyncio.timeout(deadline):
            version = await dependency.ask()
    except UNAVAILABLE as failure:
        error = type(failure).__name__
    milliseconds = round((time.perf_counter() - began) * 1000, 1)
    return Health(dependency.name, dependency.required, error is None, version, error, milliseconds)
