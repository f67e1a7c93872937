"""How long each part was away: measured from what its supervisor tells."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from codehub.embedded.child_process import ChildState, Status


@dataclass(frozen=True)
class Recovery:
    """A part that ended and became ready again; times are seconds since the stage was opened."""

    name: str
    at: float
    seconds: float


class Recoveries:
    """Hears of every change of every part; before it is armed, parts only start."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.known: list[Recovery] = []
        self._armed = False
        self._away_since: dict[str, float] = {}

    def clock(self) -> float:
        return time.monotonic() - self.began

    def arm(self) -> None:
        self._armed = True

    def disarm(self) -> None:
        self._armed = False

    def away(self) -> list[str]:
        """The parts that are not ready right now."""
        return sorted(self._away_since)

    def hear(self, status: Status) -> None:
        if not self._armed:
            return
        if status.state is not ChildState.RUNNING:
            self._away_since.setdefault(status.name, self.clock())
        elif (since := self._away_since.pop(status.name, None)) is not None:
            self.known.append(Recovery(status.name, since, self.clock() - since))


class Calm:
    """Faults that go on already end as they would."""

    def __init__(self) -> None:
        self._keepers = 0
        self._over = asyncio.Event()
        self._over.set()

    @property
    def is_kept(self) -> bool:
        return self._keepers > 0

    async def wait_over(self) -> None:
        """Return when faults may begin."""
        await self._over.wait()

    @contextmanager
    def kept(self) -> Iterator[None]:
        self._keepers += 1
        self._over.clear()
        try:
            yield
        finally:
            self._keepers -= 1
            if not self._keepers:
                self._over.set()
