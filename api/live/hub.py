"""Live updates for all browsers of this process: one subscription, one look-up per user and burst of changes.

Messages only say where to look, so a lost or doubled one does no harm as long as somebody says "look at
everything" afterwards. Clients are told the difference between what they know and what the database says.
"""

import asyncio
import json
import logging
import random
from collections.abc import Iterable
from typing import NoReturn
from uuid import UUID

from api.live.client import LiveClient
from api.live.doubts import SuspectCredentials
from api.live.feed import UserFeed
from api.live.heartbeats import HeartbeatWheel
from api.live.knowledge import LiveWorkspace
from api.live.progress import ProgressTicker
from api.live.sources import LiveSources, LiveTiming, Load
from api.live.wire import RETRY_MILLISECONDS, Frame, goodbye
from codehub.ports import CREDENTIALS_CHANGED, BusMessage, EventSubscription, ProgressBoard

__all__ = ["Frame", "LiveClient", "LiveHub", "LiveTiming", "LiveWorkspace", "Load"]

log = logging.getLogger(__name__)

LOADS_AT_ONCE = 4
# Those who are sent away together come back one by one.
RETURN_MILLISECONDS = (RETRY_MILLISECONDS // 2, RETRY_MILLISECONDS * 4)


class LiveHub:
    """Everything runs on one event loop; `run` must be running for updates and heartbeats to come."""

    def __init__(
        self,
        subscription: EventSubscription,
        load: Load,
        board: ProgressBoard,
        *,
        timing: LiveTiming | None = None,
        loads_at_once: int = LOADS_AT_ONCE,
    ) -> None:
        """`load` reads the workspaces that a user sees: those of the ids that exist, or all for None."""
        timing = timing or LiveTiming()
        self._subscription = subscription
        self._ticker = ProgressTicker(board, timing.progress)
        self._sources = LiveSources(
            subscription, load, self._ticker, timing, asyncio.Semaphore(loads_at_once)
        )
        self._feeds: dict[str, UserFeed] = {}
        self._wheel = HeartbeatWheel(timing.heartbeat)
        self._closed = False
        self.doubts = SuspectCredentials()
        self.frames_sent = 0

    @property
    def clients(self) -> int:
        """How many streams are open."""
        return len(self._wheel)

    @property
    def dropped(self) -> int:
        """How many streams were ended because they were read too slowly."""
        return self._sources.dropped + self._wheel.stalled

    @property
    def credentials(self) -> set[str]:
        """With which sessions and tokens the open streams were opened."""
        return _credentials_of(self._wheel)

    def streams_of(self, user_id: UUID) -> int:
        """How many streams this user has open here."""
        feed = self._feeds.get(str(user_id))
        return len(feed.clients) if feed else 0

    async def run(self) -> NoReturn:
        """Go on until cancelled, through every outage of Redis and of the database."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._subscription.run(self._hear))
            tasks.create_task(self._wheel.run())
            tasks.create_task(self._ticker.run())
        raise AssertionError("none of them ends")

    def connect(
        self, user_id: UUID, credential_id: str | None = None, last_event_id: str | None = None
    ) -> LiveClient:
        """A stream of this user, open inside its `async with`."""
        return LiveClient(self, user_id, credential_id, last_event_id)

    def admit(self, client: LiveClient) -> None:
        """Part of `async with`: not to be called by others."""
        if self._closed:
            client.end()
            return
        self._wheel.add(client)
        key = str(client.user_id)
        if key not in self._feeds:
            self._feeds[key] = UserFeed(client.user_id, self._sources)
        self._feeds[key].join(client)

    def dismiss(self, client: LiveClient) -> None:
        """Part of `async with`: not to be called by others."""
        client.end()
        self._wheel.remove(client)
        key = str(client.user_id)
        feed = self._feeds.get(key)
        if feed is None:
            return
        feed.leave(client)
        if not feed.clients:
            del self._feeds[key]
            self._subscription.unfollow(key)

    def end_user(self, user_id: UUID) -> int:
        """End all streams of this user at once, and say how many; what waits in them is not sent."""
        return self._end([client for client in self._wheel if client.user_id == user_id])

    def end_credential(self, credential_id: str) -> int:
        """End all streams that were opened with this session or token, and say how many."""
        return self._end([client for client in self._wheel if client.credential_id == credential_id])

    async def close(self) -> None:
        """End all streams after what waits in them, and refuse new ones."""
        self._closed = True
        for client in self._wheel:
            client.end(goodbye(random.randint(*RETURN_MILLISECONDS)))  # noqa: S311 (nothing secret)
        await asyncio.gather(*(feed.close() for feed in self._feeds.values()))

    def _end(self, clients: list[LiveClient]) -> int:
        for client in clients:
            client.end()
        return len(clients)

    def _hear(self, message: BusMessage) -> None:
        if self._closed:
            return
        if message.user_id is None:
            for feed in self._feeds.values():
                feed.note_all()
            self.doubts.add(self.credentials)
        elif message.user_id in self._feeds:
            self._note(self._feeds[message.user_id], message.payload)

    def _note(self, feed: UserFeed, payload: str) -> None:
        """Take in a message, which anybody who can use Redis may have sent."""
        event, subject = _parse(payload)
        if event == CREDENTIALS_CHANGED:
            self.doubts.add(_credentials_of(feed.clients))
        elif subject is not None:
            feed.note(subject)
        else:
            # One that cannot be read may have been about anything; a resync of one user has no id either.
            feed.note_all()
            self.doubts.add(_credentials_of(feed.clients))


def _credentials_of(clients: Iterable[LiveClient]) -> set[str]:
    return {client.credential_id for client in clients if client.credential_id is not None}


def _parse(payload: str) -> tuple[str | None, str | None]:
    """Its event and the id in it; None for what cannot be read."""
    try:
        content = json.loads(payload)
        return content.get("event"), str(UUID(content["id"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None, None
