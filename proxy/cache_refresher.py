"""Keeps what is remembered true: asks again now and then, and at once when there is word of a change."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import NoReturn, Protocol
from uuid import UUID

from codehub.domain.conditions import WorkspaceId
from codehub.ports import CREDENTIALS_CHANGED, BusMessage, EventSubscription
from codehub.services.outages import is_outage
from proxy.caller_cache import CallerCache
from proxy.workspace_cache import WorkspaceCache

log = logging.getLogger(__name__)

# With the age up to which things are believed this stays below five seconds.
PERIOD_SECONDS = 1.5
ANSWER_SECONDS = 3.0
# Changes come in bursts.
GATHER_SECONDS = 0.02


class Connections(Protocol):
    """Who is connected."""

    @property
    def credentials(self) -> set[str]:
        """With which sessions and tokens."""

    def end_credential(self, credential: str) -> int:
        """End all connections with it."""


class CacheRefresher:
    """Events make changes known at once; when they are lost, asking does within seconds."""

    def __init__(
        self,
        callers: CallerCache,
        directory: WorkspaceCache,
        subscription: EventSubscription,
        period_seconds: float = PERIOD_SECONDS,
    ) -> None:
        self._callers = callers
        self._directory = directory
        self._subscription = subscription
        self._period_seconds = period_seconds
        self._kick = asyncio.Event()
        self._followed: set[str] = set()
        self._down = False

    async def run(self, connections: Connections) -> NoReturn:
        """Go on until cancelled, through every outage."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._subscription.run(self._hear))
            while True:
                await self._confirm(connections)
                self._follow(tasks.create_task)
                await self._wait()

    def _hear(self, message: BusMessage) -> None:
        """Take in a message, which anybody who can use Redis may have sent."""
        try:
            document = json.loads(message.payload) if message.user_id is not None else {}
            if document.get("event") == CREDENTIALS_CHANGED:
                self._kick.set()
            else:
                self._directory.note_change(WorkspaceId(str(UUID(document["id"]))))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            # It may have been about anything.
            self._kick.set()

    async def _confirm(self, connections: Connections) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                for credential in await self._callers.confirm(connections.credentials):
                    connections.end_credential(credential)
                await self._directory.confirm()
        except Exception as error:
            # Whatever it is, connections that are open go on, and new requests fail closed.
            if not is_outage(error):
                log.exception("what is remembered could not be confirmed")
            elif not self._down:
                log.warning("the database does not answer; new requests wait for it: %s", error)
            self._down = True
        else:
            if self._down:
                log.info("the database answers again")
            self._down = False

    def _follow(self, start: Callable[..., object]) -> None:
        users = self._callers.users
        for user_id in users - self._followed:
            start(self._subscription.follow(user_id))
        for user_id in self._followed - users:
            self._subscription.unfollow(user_id)
        self._followed = users

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._period_seconds):
                await self._kick.wait()
                await asyncio.sleep(GATHER_SECONDS)
        except TimeoutError:
            return
        finally:
            self._kick.clear()
