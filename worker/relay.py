"""Relays notifications of PostgreSQL to the event bus, for live updates.

Every worker runs a relay, and one of them is elected. A message names only what changed, so one message can
stand for many changes. After an outage, a resync tells all servers of live updates to reload everything.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn, Protocol

import asyncpg  # type: ignore[import-untyped]

from codehub.backoff import delay_after
from codehub.db.session import Connection, DatabaseUnavailable, connect
from codehub.domain.failures import Transient
from codehub.ports import CREDENTIALS_CHANGED, EventBus

log = logging.getLogger(__name__)

APPLICATION_NAME = "codehub-relay"
# The key of a PostgreSQL advisory lock: "relay" in ASCII.
RELAY_LOCK = 0x72656C6179
UPDATED, DELETED, RESYNC = "workspace_updated", "workspace_deleted", "resync"
EVENT_OF_CHANNEL = {"ws_sse": UPDATED, "ws_deleted": DELETED, "credentials": CREDENTIALS_CHANGED}
CAPACITY = 10_000


class RelayBus(EventBus, Protocol):
    """An event bus that can also broadcast."""

    async def broadcast(self, message: str) -> None:
        """Send to every server of live updates."""


@dataclass(frozen=True)
class RelayTiming:
    """Periods and timeouts in seconds."""

    election: float = 1.0
    check: float = 5.0
    response: float = 5.0
    # PostgreSQL ends the session of a frozen or disconnected relay after this time, which frees the lock.
    # Longer than `check` and `response` together.
    silence: float = 15.0
    gather: float = 0.05
    first_delay: float = 0.2
    max_delay: float = 10.0


@dataclass(frozen=True)
class Subject:
    """The workspace, session, token or user that a message is about."""

    user_id: str
    id: str


class PendingMessages:
    """The messages to send: the latest event of each subject, or a resync for the subject None.

    It starts with a resync, because earlier changes are unknown.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._events: OrderedDict[Subject | None, str] = OrderedDict({None: RESYNC})
        self._filled = asyncio.Event()
        self._filled.set()

    def add(self, subject: Subject, event: str) -> None:
        self._events[subject] = event
        if len(self._events) > self._capacity:
            self._events.clear()
            self._events[None] = RESYNC
        self._filled.set()

    def take(self) -> tuple[Subject | None, str] | None:
        """Return the oldest message, or None if there is none."""
        if self._events:
            return self._events.popitem(last=False)
        self._filled.clear()
        return None

    def put_back(self, subject: Subject | None, event: str) -> None:
        """Put an unsent message back at the front, unless there is a newer one for its subject."""
        self._events.setdefault(subject, event)
        self._events.move_to_end(subject, last=False)

    async def wait(self) -> None:
        await self._filled.wait()

    def on_notification(self, _connection: object, _process_id: int, channel: str, payload: str) -> None:
        """Add a notification. Any client of the database can send one, so ignore invalid ones."""
        try:
            content = json.loads(payload)
            subject = Subject(str(content["owner_user_id"]), str(content["id"]))
        except (ValueError, TypeError, KeyError):
            log.warning("ignored an invalid notification on %s: %.100s", channel, payload)
        else:
            self.add(subject, EVENT_OF_CHANNEL[channel])


class Backoff:
    """Waits longer after each failure in a row, with jitter."""

    def __init__(self, timing: RelayTiming) -> None:
        self._timing = timing
        self.reset()

    def reset(self) -> None:
        self._failures = 0

    async def wait(self) -> None:
        self._failures += 1
        await asyncio.sleep(delay_after(self._failures, self._timing.first_delay, self._timing.max_delay))


class EventRelay:
    """Relays events while it is elected, and stands by otherwise."""

    def __init__(self, database_dsn: str, bus: RelayBus, timing: RelayTiming | None = None) -> None:
        self._dsn = database_dsn
        self._bus = bus
        self._timing = timing or RelayTiming()

    async def run(self) -> NoReturn:
        """Run until cancelled, through outages of PostgreSQL and of the bus."""
        backoff = Backoff(self._timing)
        while True:
            try:
                await self._serve(elected=backoff.reset)
            except* (DatabaseUnavailable, OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as lost:
                log.warning("no live updates until PostgreSQL is back: %s", _reason(lost))
            await backoff.wait()

    async def _serve(self, elected: Callable[[], None]) -> None:
        """Stand by, then relay, on one connection. Raise when it is lost."""
        connection = await connect(
            self._dsn,
            connect_timeout_seconds=self._timing.response,
            application_name=APPLICATION_NAME,
            idle_session_timeout=f"{round(self._timing.silence * 1000)}ms",
        )
        try:
            await self._stand_by(connection)
            elected()
            messages = await self._listen(connection)
            log.info("this worker now relays events")
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch(connection))
                tasks.create_task(self._send_messages(messages))
        finally:
            # A graceful close would wait for a server that may be down.
            connection.terminate()

    async def _stand_by(self, connection: Connection) -> None:
        while not await self._fetch(connection, "SELECT pg_try_advisory_lock($1)", RELAY_LOCK):  # noqa: ASYNC110
            await asyncio.sleep(self._timing.election)

    async def _listen(self, connection: Connection) -> PendingMessages:
        messages = PendingMessages()
        async with asyncio.timeout(self._timing.response):
            for channel in EVENT_OF_CHANNEL:
                await connection.add_listener(channel, messages.on_notification)
        return messages

    async def _watch(self, connection: Connection) -> NoReturn:
        """Raise when the connection has ended or no longer responds."""
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _connection: ended.set())
        while not ended.is_set():
            await self._fetch(connection, "SELECT 1")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timing.check):
                    await ended.wait()
        raise DatabaseUnavailable("the connection was closed")

    async def _fetch(self, connection: Connection, query: str, *arguments: object) -> object:
        async with asyncio.timeout(self._timing.response):
            return await connection.fetchval(query, *arguments)

    async def _send_messages(self, messages: PendingMessages) -> NoReturn:
        backoff = Backoff(self._timing)
        while True:
            await messages.wait()
            try:
                await self._send_all(messages)
            except Transient as error:
                log.warning("no live updates until the event bus is back: %s", error.message)
                await backoff.wait()
            else:
                backoff.reset()
                # Send the first change at once, and collect those of a burst.
                await asyncio.sleep(self._timing.gather)

    async def _send_all(self, messages: PendingMessages) -> None:
        # Take a message before sending it: a change meanwhile must be sent again.
        while (message := messages.take()) is not None:
            subject, event = message
            try:
                await self._send(subject, event)
            except Transient:
                messages.put_back(subject, event)
                raise
            except Exception:
                # One invalid message must not block the others.
                log.exception("could not send %s of %s", event, subject)

    async def _send(self, subject: Subject | None, event: str) -> None:
        if subject is None:
            await self._bus.broadcast(json.dumps({"event": event}))
        else:
            message = json.dumps({"event": event, "id": subject.id})
            await self._bus.publish(subject.user_id, message)


def _reason(lost: BaseExceptionGroup[BaseException]) -> str:
    return "; ".join(str(error) or type(error).__name__ for error in lost.exceptions)
