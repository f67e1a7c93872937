"""Tells people's browsers what changed: notifications of PostgreSQL become messages on the event bus.

Every worker runs a relay and one of them is elected. Messages only say where to look, so one may stand for
many changes; where changes may have been missed, everybody is asked to look at everything.
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
RELAY_LOCK = 0x72656C6179  # "relay"
UPDATED, DELETED, RESYNC = "workspace_updated", "workspace_deleted", "resync"
EVENT_OF_CHANNEL = {"ws_sse": UPDATED, "ws_deleted": DELETED, "credentials": CREDENTIALS_CHANGED}
CAPACITY = 10_000


class RelayBus(EventBus, Protocol):
    """An event bus that also reaches those whose users it does not know."""

    async def broadcast(self, message: str) -> None:
        """Send to every server of live updates."""


@dataclass(frozen=True)
class RelayTiming:
    """How often, and how long, in seconds."""

    election: float = 1.0
    check: float = 5.0
    answer: float = 5.0
    # PostgreSQL ends the session of a relay that is silent for so long, be it frozen or cut off, and thus
    # frees the lock. Longer than `check` and `answer` together.
    silence: float = 15.0
    gather: float = 0.05
    first_delay: float = 0.2
    max_delay: float = 10.0


@dataclass(frozen=True)
class Subject:
    """Whose workspace, session or token a message is about, or which user."""

    user_id: str
    id: str


class Notices:
    """What is still to be announced: the latest event of each subject, or None for all of them.

    It starts with all, because nobody knows what happened before.
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
        """The oldest; None if there is nothing to say."""
        if self._events:
            return self._events.popitem(last=False)
        self._filled.clear()
        return None

    def put_back(self, subject: Subject | None, event: str) -> None:
        """Keep one that could not be sent, in its place, unless there is a newer one."""
        self._events.setdefault(subject, event)
        self._events.move_to_end(subject, last=False)

    async def wait(self) -> None:
        await self._filled.wait()

    def hear(self, _connection: object, _process_id: int, channel: str, payload: str) -> None:
        """Take in a notification, which anybody who can use the database may have sent."""
        try:
            content = json.loads(payload)
            subject = Subject(str(content["owner_user_id"]), str(content["id"]))
        except (ValueError, TypeError, KeyError):
            log.warning("ignored a notification on %s that is not one of ours: %.100s", channel, payload)
        else:
            self.add(subject, EVENT_OF_CHANNEL[channel])


class Backoff:
    """Waits longer after each failure in a row, never in step with others."""

    def __init__(self, timing: RelayTiming) -> None:
        self._timing = timing
        self.reset()

    def reset(self) -> None:
        self._failures = 0

    async def wait(self) -> None:
        self._failures += 1
        await asyncio.sleep(delay_after(self._failures, self._timing.first_delay, self._timing.max_delay))


class EventRelay:
    """Relays while it is elected, stands by while another one is."""

    def __init__(self, database_dsn: str, bus: RelayBus, timing: RelayTiming | None = None) -> None:
        self._dsn = database_dsn
        self._bus = bus
        self._timing = timing or RelayTiming()

    async def run(self) -> NoReturn:
        """Go on until cancelled, through every outage of PostgreSQL and of the bus."""
        backoff = Backoff(self._timing)
        while True:
            try:
                await self._serve(elected=backoff.reset)
            except* (DatabaseUnavailable, OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as lost:
                log.warning("no events until PostgreSQL is back: %s", _reason(lost))
            await backoff.wait()

    async def _serve(self, elected: Callable[[], None]) -> None:
        """Stand by, then relay, on one connection; raise when it is lost."""
        connection = await connect(
            self._dsn,
            connect_timeout_seconds=self._timing.answer,
            application_name=APPLICATION_NAME,
            idle_session_timeout=f"{round(self._timing.silence * 1000)}ms",
        )
        try:
            await self._stand_by(connection)
            elected()
            notices = await self._listen(connection)
            log.info("this worker relays events now")
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch(connection))
                tasks.create_task(self._announce(notices))
        finally:
            # At once: a polite end would wait for a server that may not answer any more.
            connection.terminate()

    async def _stand_by(self, connection: Connection) -> None:
        while not await self._fetch(connection, "SELECT pg_try_advisory_lock($1)", RELAY_LOCK):  # noqa: ASYNC110
            await asyncio.sleep(self._timing.election)

    async def _listen(self, connection: Connection) -> Notices:
        notices = Notices()
        async with asyncio.timeout(self._timing.answer):
            for channel in EVENT_OF_CHANNEL:
                await connection.add_listener(channel, notices.hear)
        return notices

    async def _watch(self, connection: Connection) -> NoReturn:
        """Raise when the connection has ended, or does not answer although it looks open."""
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _connection: ended.set())
        while not ended.is_set():
            await self._fetch(connection, "SELECT 1")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timing.check):
                    await ended.wait()
        raise DatabaseUnavailable("the connection has ended")

    async def _fetch(self, connection: Connection, query: str, *arguments: object) -> object:
        async with asyncio.timeout(self._timing.answer):
            return await connection.fetchval(query, *arguments)

    async def _announce(self, notices: Notices) -> NoReturn:
        backoff = Backoff(self._timing)
        while True:
            await notices.wait()
            try:
                await self._send_all(notices)
            except Transient as error:
                log.warning("events wait for the bus: %s", error.message)
                await backoff.wait()
            else:
                backoff.reset()
                # The first change of a quiet time is told at once; those of a burst come together.
                await asyncio.sleep(self._timing.gather)

    async def _send_all(self, notices: Notices) -> None:
        # Taken before it is sent: a change during the sending must be announced again.
        while (notice := notices.take()) is not None:
            subject, event = notice
            try:
                await self._send(subject, event)
            except Transient:
                notices.put_back(subject, event)
                raise
            except Exception:
                # One message that cannot be sent must not silence all others.
                log.exception("could not announce %s of %s", event, subject)

    async def _send(self, subject: Subject | None, event: str) -> None:
        if subject is None:
            await self._bus.broadcast(json.dumps({"event": event}))
        else:
            message = json.dumps({"event": event, "id": subject.id})
            await self._bus.publish(subject.user_id, message)


def _reason(lost: BaseExceptionGroup[BaseException]) -> str:
    return "; ".join(str(error) or type(error).__name__ for error in lost.exceptions)
