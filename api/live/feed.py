"""The live updates of one user: what may have changed is looked up once and sent to all of its clients."""

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from api.live.client import LiveClient
from api.live.knowledge import LiveWorkspace, SentState
from api.live.progress import UnderWay
from api.live.sources import LiveSources
from api.live.wire import UNCHANGED

log = logging.getLogger(__name__)

# More than this at once is cheaper to look up as a whole, and no list may grow without bound.
MAX_STALE = 256


class UserFeed:
    """Has a task only while there is something to look up.

    One look-up at a time, so what is sent never goes back in time. The first change of a quiet time is told
    at once; those of a burst come together.
    """

    __slots__ = (
        "_all_stale", "_followed", "_joining", "_knowledge", "_sources", "_stale", "_task",
        "clients", "under_way", "user_id",
    )  # fmt: skip

    def __init__(self, user_id: UUID, sources: LiveSources) -> None:
        self.user_id = user_id
        self.clients: set[LiveClient] = set()
        self.under_way = UnderWay()
        self._sources = sources
        self._knowledge = SentState()
        self._joining: set[LiveClient] = set()
        self._stale: set[str] = set()
        self._all_stale = False
        self._followed = False
        self._task: asyncio.Task[None] | None = None

    def join(self, client: LiveClient) -> None:
        """Send it a snapshot, then what changes."""
        self.clients.add(client)
        self._joining.add(client)
        self.note_all()

    def leave(self, client: LiveClient) -> None:
        self.clients.discard(client)
        self._joining.discard(client)

    def note(self, workspace_id: str) -> None:
        """This one may have changed."""
        self._stale.add(workspace_id)
        self._all_stale = self._all_stale or len(self._stale) > MAX_STALE
        self._wake()

    def note_all(self) -> None:
        """Anything may have changed."""
        self._all_stale = True
        self._wake()

    @property
    def are_there(self) -> bool:
        return bool(self.clients)

    def hint(self, data: bytes) -> None:
        """Send it to everybody who has a snapshot and reads."""
        for client in self._listening():
            client.hint(data)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _wake(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._refresh())

    async def _refresh(self) -> None:
        try:
            await self._catch_up()
        except Exception:
            # Nobody may be left with a stream that says nothing; who comes back gets a snapshot.
            log.exception("live updates of user %s ended", self.user_id)
            for client in self.clients:
                client.end()
        finally:
            self._task = None

    async def _catch_up(self) -> None:
        failures = 0
        timing = self._sources.timing
        # A feed that everybody has left is forgotten already, and must follow nobody any more.
        while self.clients and (self._all_stale or self._stale):
            if not self._followed:
                self._followed = True
                await self._sources.subscription.follow(str(self.user_id))
            failures = 0 if await self._tell() else failures + 1
            await asyncio.sleep(timing.delay(failures) if failures else timing.gather)

    async def _tell(self) -> bool:
        """Look up what may have changed and tell everybody; False if that could not be read."""
        # Taken before it is looked up: what changes meanwhile must be looked up again.
        asked, self._stale = None if self._all_stale else self._stale, set()
        joining, self._joining, self._all_stale = self._joining, set(), False
        rows = await self._sources.read(self.user_id, asked)
        if rows is None:
            self._joining |= joining & self.clients
            self._all_stale = True
            return False
        listening = self._listening()
        for frame in self._knowledge.learn(rows, asked):
            self._send(frame.encode(), listening)
        self.under_way.learn(rows, asked)
        self._greet(joining & self.clients, rows)
        self._sources.ticker.follow(self)
        return True

    def _listening(self) -> set[LiveClient]:
        return {client for client in self.clients if client.greeted}

    def _greet(self, joining: set[LiveClient], rows: Sequence[LiveWorkspace]) -> None:
        if not joining:
            return
        snapshot = self._knowledge.snapshot(rows)
        knowing = {client for client in joining if client.last_event_id == snapshot.id}
        self._send(UNCHANGED, knowing)
        if joining - knowing:
            self._send(snapshot.encode(), joining - knowing)
        progress = self.under_way.repeat()
        for client in joining:
            client.greeted = True
            if progress:
                client.hint(progress)

    def _send(self, data: bytes, clients: set[LiveClient]) -> None:
        for client in clients:
            self._sources.dropped += not client.offer(data)
