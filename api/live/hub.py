"""Live updates for all browsers of this process: one subscription, one read per user and burst of changes.

Messages only say what to read again, so a lost or duplicate message does no harm if a resync follows. Clients
get the difference between what they were sent and what the database says.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Iterable, Set
from contextlib import asynccontextmanager
from typing import NoReturn
from uuid import UUID

from api.live.client import HeartbeatWheel, LiveClient
from api.live.feed import FeedSources, LiveTiming, Load, UserFeed
from api.live.progress import ProgressPoller
from api.live.wire import RETRY_MILLISECONDS, goodbye
from codehub.ports import CREDENTIALS_CHANGED, BusMessage, EventSubscription, ProgressBoard

log = logging.getLogger(__name__)

LOADS_AT_ONCE = 4
# A range, so that clients do not all reconnect at the same time.
RECONNECT_MILLISECONDS = (RETRY_MILLISECONDS // 2, RETRY_MILLISECONDS * 4)


class SuspectCredentials:
    """Sessions and tokens of open streams that may have been revoked and must be checked."""

    def __init__(self) -> None:
        self._credentials: set[str] = set()
        self._filled = asyncio.Event()

    def add(self, credentials: Set[str]) -> None:
        self._credentials |= credentials
        if self._credentials:
            self._filled.set()

    async def take(self) -> set[str]:
        """Wait until there are any, and return all."""
        await self._filled.wait()
        self._filled.clear()
        taken, self._credentials = self._credentials, set()
        return taken


class LiveHub:
    """Connects event streams with the feeds of their users; updates and heartbeats need `run`."""

    def __init__(
        self,
        subscription: EventSubscription,
        load: Load,
        board: ProgressBoard,
        *,
        timing: LiveTiming | None = None,
        loads_at_once: int = LOADS_AT_ONCE,
    ) -> None:
        """`load` reads the workspaces that a user sees: those among the ids, or all for None."""
        timing = timing or LiveTiming()
        self._subscription = subscription
        self._progress = ProgressPoller(board, timing.progress)
        self._sources = FeedSources(
            subscription, load, self._progress, timing, asyncio.Semaphore(loads_at_once)
        )
        self._feeds: dict[str, UserFeed] = {}
        self._wheel = HeartbeatWheel(timing.heartbeat)
        self._closed = False
        self._frames_sent = 0
        self.suspects = SuspectCredentials()

    @property
    def clients(self) -> int:
        """How many streams are open."""
        return len(self._wheel)

    @property
    def dropped(self) -> int:
        """How many streams were ended because they were read too slowly."""
        return self._sources.dropped + self._wheel.stalled

    @property
    def frames_sent(self) -> int:
        return self._frames_sent + sum(client.frames_sent for client in self._wheel)

    @property
    def credentials(self) -> set[str]:
        """The sessions and tokens of the open streams."""
        return _credentials_of(self._wheel)

    def streams_of(self, user_id: UUID) -> int:
        """Return how many streams this user has open in this process."""
        feed = self._feeds.get(str(user_id))
        return len(feed.clients) if feed else 0

    async def run(self) -> NoReturn:
        """Run until cancelled, through every outage of Redis and the database."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._subscription.run(self._on_message))
            tasks.create_task(self._wheel.run())
            tasks.create_task(self._progress.run())
        raise AssertionError("none of the tasks ends")

    @asynccontextmanager
    async def connect(
        self, user_id: UUID, credential_id: str | None = None, last_event_id: str | None = None
    ) -> AsyncIterator[LiveClient]:
        """Open a stream for this user."""
        client = LiveClient(user_id, credential_id, last_event_id)
        if self._closed:
            client.end()
        else:
            self._add(client)
        try:
            yield client
        finally:
            self._remove(client)

    def end_user(self, user_id: UUID) -> int:
        """End all streams of this user without sending what is queued, and return how many."""
        return self._end([client for client in self._wheel if client.user_id == user_id])

    def end_credential(self, credential_id: str) -> int:
        """End all streams of this session or token without sending what is queued, and return how many."""
        return self._end([client for client in self._wheel if client.credential_id == credential_id])

    async def close(self) -> None:
        """Refuse new streams, and end all open ones after sending what is queued."""
        self._closed = True
        for client in self._wheel:
            client.end(goodbye(random.randint(*RECONNECT_MILLISECONDS)))  # noqa: S311 (not a secret)
        await asyncio.gather(*(feed.close() for feed in self._feeds.values()))

    def _add(self, client: LiveClient) -> None:
        self._wheel.add(client)
        key = str(client.user_id)
        if key not in self._feeds:
            self._feeds[key] = UserFeed(client.user_id, self._sources)
        self._feeds[key].join(client)

    def _remove(self, client: LiveClient) -> None:
        client.end()
        self._wheel.remove(client)
        self._frames_sent += client.frames_sent
        key = str(client.user_id)
        feed = self._feeds.get(key)
        if feed is None:
            return
        feed.leave(client)
        if not feed.clients:
            del self._feeds[key]
            self._subscription.unfollow(key)

    def _end(self, clients: list[LiveClient]) -> int:
        for client in clients:
            client.end()
        return len(clients)

    def _on_message(self, message: BusMessage) -> None:
        if self._closed:
            return
        if message.user_id is None:
            for feed in self._feeds.values():
                feed.mark_all_stale()
            self.suspects.add(self.credentials)
        elif message.user_id in self._feeds:
            self._on_user_message(self._feeds[message.user_id], message.payload)

    def _on_user_message(self, feed: UserFeed, payload: str) -> None:
        """Handle a message that any client of Redis may have sent."""
        event, subject = _parse(payload)
        if event == CREDENTIALS_CHANGED:
            self.suspects.add(_credentials_of(feed.clients))
        elif subject is not None:
            feed.mark_stale(subject)
        else:
            # An unreadable message may have been about anything; a resync of one user has no id either.
            feed.mark_all_stale()
            self.suspects.add(_credentials_of(feed.clients))


def _credentials_of(clients: Iterable[LiveClient]) -> set[str]:
    return {client.credential_id for client in clients if client.credential_id is not None}


def _parse(payload: str) -> tuple[str | None, str | None]:
    """Return the event and the id in it, or None for both if the message cannot be read."""
    try:
        content = json.loads(payload)
        return content.get("event"), str(UUID(content["id"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None, None
