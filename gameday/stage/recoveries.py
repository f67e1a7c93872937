"""How long each part was unavailable, and pauses in which no new fault begins."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from codehub.embedded.child_process import ChildState, ChildStatus


@dataclass(frozen=True)
class Recovery:
    """A part that ended and became ready again; times are seconds since the stage was opened."""

    name: str
    at: float
    seconds: float


class RecoveryLog:
    """Measures recoveries from the supervisor's status updates; ignores them while the stage starts."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.recoveries: list[Recovery] = []
        self._enabled = False
        self._unavailable_since: dict[str, float] = {}

    def clock(self) -> float:
        return time.monotonic() - self.began

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def unavailable(self) -> list[str]:
        """Return the parts that are not ready."""
        return sorted(self._unavailable_since)

    def update(self, status: ChildStatus) -> None:
        if not self._enabled:
            return
        if status.state is not ChildState.RUNNING:
            self._unavailable_since.setdefault(status.name, self.clock())
        elif (since := self._unavailable_since.pop(status.name, None)) is not None:
            self.recoveries.append(Recovery(status.name, since, self.clock() - since))


class FaultPause:
    """While it is held, no new fault begins; active faults end as planned."""

    def __init__(self) -> None:
        self._holders = 0
        self._over = asyncio.Event()
        self._over.set()

    @property
    def is_active(self) -> bool:
        return self._holders > 0

    async def wait_until_over(self) -> None:
        await self._over.wait()

    @contextmanager
    def hold(self) -> Iterator[None]:
        self._holders += 1
        self._over.clear()
        try:
            yield
        finally:
            self._holders -= 1
            if not self._holders:
                self._over.set()
