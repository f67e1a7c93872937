"""What all live feeds of a process share: where to look, how often, and how many at once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from api.live.knowledge import LiveWorkspace
from api.live.progress import ProgressTicker
from codehub.backoff import delay_after
from codehub.ports import EventSubscription

log = logging.getLogger(__name__)

Load = Callable[[UUID, Collection[str] | None], Awaitable[Sequence[LiveWorkspace]]]


@dataclass(frozen=True)
class LiveTiming:
    """How often, and how long, in seconds."""

    gather: float = 0.05
    heartbeat: float = 30.0
    progress: float = 1.0
    load: float = 10.0
    first_delay: float = 0.2
    max_delay: float = 10.0

    def delay(self, failures: int) -> float:
        return delay_after(failures, self.first_delay, self.max_delay)


@dataclass
class LiveSources:
    """What all feeds of a process share."""

    subscription: EventSubscription
    load: Load
    ticker: ProgressTicker
    timing: LiveTiming
    # So that a resync of everybody leaves connections of the database for others.
    places: asyncio.Semaphore
    down: bool = False
    dropped: int = 0

    async def read(self, user_id: UUID, ids: Collection[str] | None) -> Sequence[LiveWorkspace] | None:
        """None if it cannot be read now; an outage is logged once for all."""
        try:
            async with self.places, asyncio.timeout(self.timing.load):
                rows = await self.load(user_id, ids)
        except Exception:
            # Whatever it is, browsers must not pay for it: they would all come back at once.
            if not self.down:
                log.exception("live updates wait: workspaces cannot be read")
            self.down = True
            return None
        if self.down:
            log.info("live updates go on")
        self.down = False
        return rows
