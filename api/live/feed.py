"""Live updates of one user: read what may have changed once, and send it to all of the user's clients."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from api.live.client import LiveClient
from api.live.progress import ProgressPoller, RunningOperations
from api.live.wire import UNCHANGED, LiveWorkspace, SentState
from codehub.backoff import delay_after
from codehub.ports import EventSubscription

log = logging.getLogger(__name__)

# Beyond this, reading everything is cheaper, and the set of ids must not grow without bound.
MAX_STALE = 256
Load: TypeAlias = Callable[[UUID, Collection[str] | None], Awaitable[Sequence[LiveWorkspace]]]


@dataclass(frozen=True)
class LiveTiming:
    """Periods and timeouts, in seconds."""

    gather: float = 0.05
    heartbeat: float = 30.0
    progress: float = 1.0
    load: float = 10.0
    first_delay: float = 0.2
    max_delay: float = 10.0

    def delay(self, failures: int) -> float:
        return delay_after(failures, self.first_delay, self.max_delay)


@dataclass
class FeedSources:
    """What all feeds of a process share."""

    subscription: EventSubscription
    load: Load
    progress: ProgressPoller
    timing: LiveTiming
    # So that a resync of all users leaves database connections for requests.
    load_slots: asyncio.Semaphore
    down: bool = False
    dropped: int = 0

    async def read(self, user_id: UUID, ids: Collection[str] | None) -> Sequence[LiveWorkspace] | None:
        """Return the user's workspaces, or None during an outage, which is logged once for all feeds."""
        try:
            async with self.load_slots, asyncio.timeout(self.timing.load):
                rows = await self.load(user_id, ids)
        except Exception:
            # Any error: if it ended the streams, all browsers would come back at once.
            if not self.down:
                log.exception("live updates paused: cannot read workspaces")
            self.down = True
            return None
        if self.down:
            log.info("live updates resumed")
        self.down = False
        return rows


class UserFeed:
    """Sends changes of one user's workspaces; it has a task only while there is something to read.

    Reads do not overlap, so updates are never sent out of order. The first change after a quiet time is sent
    at once; those of a burst are sent together.
    """

    __slots__ = (
        "_all_stale", "_joining", "_operations", "_sent", "_sources", "_stale", "_subscribed", "_task",
        "clients", "user_id",
    )  # fmt: skip

    def __init__(self, user_id: UUID, sources: FeedSources) -> None:
        self.user_id = user_id
        self.clients: set[LiveClient] = set()
        self._sources = sources
        self._sent = SentState()
        self._operations = RunningOperations()
        self._joining: set[LiveClient] = set()
        self._stale: set[str] = set()
        self._all_stale = False
        self._subscribed = False
        self._task: asyncio.Task[None] | None = None

    def join(self, client: LiveClient) -> None:
        """Send the client a snapshot, then changes."""
        self.clients.add(client)
        self._joining.add(client)
        self.mark_all_stale()

    def leave(self, client: LiveClient) -> None:
        self.clients.discard(client)
        self._joining.discard(client)
        if not self.clients:
            self._operations.clear()

    def mark_stale(self, workspace_id: str) -> None:
        """Read this workspace again: it may have changed."""
        self._stale.add(workspace_id)
        self._all_stale = self._all_stale or len(self._stale) > MAX_STALE
        self._wake()

    def mark_all_stale(self) -> None:
        """Read all workspaces again: any may have changed."""
        self._all_stale = True
        self._wake()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _wake(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._catch_up()
        except Exception:
            # A stream must not stay open in silence; browsers reconnect and get a snapshot.
            log.exception("live updates of user %s failed", self.user_id)
            for client in self.clients:
                client.end()
        finally:
            self._task = None

    async def _catch_up(self) -> None:
        failures = 0
        timing = self._sources.timing
        # The hub has forgotten a feed without clients, so it must not subscribe anymore.
        while self.clients and (self._all_stale or self._stale):
            if not self._subscribed:
                self._subscribed = True
                await self._sources.subscription.follow(str(self.user_id))
            failures = 0 if await self._send_changes() else failures + 1
            await asyncio.sleep(timing.delay(failures) if failures else timing.gather)

    async def _send_changes(self) -> bool:
        """Read what may have changed and send it; return False if it cannot be read."""
        # Reset before reading: what changes meanwhile must be read again.
        asked, self._stale = None if self._all_stale else self._stale, set()
        joining, self._joining, self._all_stale = self._joining, set(), False
        rows = await self._sources.read(self.user_id, asked)
        if rows is None:
            self._joining |= joining & self.clients
            self._all_stale = True
            return False
        up_to_date = self._with_snapshot()
        for frame in self._sent.update(rows, asked):
            self._send(frame.encode(), up_to_date)
        self._operations.update(rows, asked)
        self._send_snapshot(joining & self.clients, rows)
        if self.clients:
            self._sources.progress.watch(self._operations, self._send_progress)
        return True

    def _with_snapshot(self) -> set[LiveClient]:
        return {client for client in self.clients if client.has_snapshot}

    def _send_snapshot(self, joining: set[LiveClient], rows: Sequence[LiveWorkspace]) -> None:
        if not joining:
            return
        snapshot = self._sent.snapshot(rows)
        current = {client for client in joining if client.last_event_id == snapshot.id}
        self._send(UNCHANGED, current)
        if joining - current:
            self._send(snapshot.encode(), joining - current)
        progress = self._operations.frames_sent()
        for client in joining:
            client.has_snapshot = True
            if progress:
                client.offer_progress(progress)

    def _send(self, data: bytes, clients: set[LiveClient]) -> None:
        for client in clients:
            self._sources.dropped += not client.offer(data)

    def _send_progress(self, data: bytes) -> None:
        for client in self._with_snapshot():
            client.offer_progress(data)
