"""Health and versions of the services that the API depends on."""

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
    """One service; `read_version` raises if the service does not answer."""

    name: str
    required: bool
    read_version: Callable[[], Awaitable[str]]


@dataclass(frozen=True)
class Health:
    """The state of one service; `error` is only the name of an exception: its text may contain addresses."""

    name: str
    required: bool
    healthy: bool
    version: str | None
    error: str | None
    milliseconds: float


async def check_all(dependencies: Sequence[Dependency], deadline: float = DEADLINE_SECONDS) -> list[Health]:
    """Check all concurrently; one that takes longer than the deadline is unhealthy."""
    return list(await asyncio.gather(*(_check(dependency, deadline) for dependency in dependencies)))


async def _check(dependency: Dependency, deadline: float) -> Health:
    began = time.perf_counter()
    version, error = None, None
    try:
        async with asyncio.timeout(deadline):
            version = await dependency.read_version()
    except UNAVAILABLE as failure:
        error = type(failure).__name__
    milliseconds = round((time.perf_counter() - began) * 1000, 1)
    return Health(dependency.name, dependency.required, error is None, version, error, milliseconds)
