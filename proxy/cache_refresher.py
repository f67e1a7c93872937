"""Keeps the caches fresh: refreshes them periodically, and at once when an event reports a change."""

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
from proxy.port_access import Guests, is_guest
from proxy.workspace_cache import WorkspaceCache

log = logging.getLogger(__name__)

# With the caches' FRESH_SECONDS, this keeps a revoked credential alive for less than five seconds.
PERIOD_SECONDS = 1.5
QUERY_SECONDS = 3.0
# Events come in bursts.
DEBOUNCE_SECONDS = 0.02


class Connections(Protocol):
    """The open connections of the proxy."""

    @property
    def credentials(self) -> set[str]:
        """The ids of the sessions and tokens in use."""

    def end_credential(self, credential: str) -> int:
        """End all connections that use the credential."""


class CacheRefresher:
    """Events report changes at once; if they are lost, polling finds them within seconds."""

    def __init__(
        self,
        callers: CallerCache,
        workspaces: WorkspaceCache,
        subscription: EventSubscription,
        guests: Guests,
        period_seconds: float = PERIOD_SECONDS,
    ) -> None:
        self._callers = callers
        self._workspaces = workspaces
        self._subscription = subscription
        self._guests = guests
        self._period_seconds = period_seconds
        self._wanted = asyncio.Event()
        self._followed: set[str] = set()
        self._down = False

    async def run(self, connections: Connections) -> NoReturn:
        """Run until cancelled; survive outages."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._subscription.run(self._receive))
            while True:
                await self._refresh(connections)
                self._follow(tasks.create_task)
                await self._wait()

    def _receive(self, message: BusMessage) -> None:
        """Handle a message. It is not trusted: anyone with access to Redis may have sent it."""
        try:
            document = json.loads(message.payload) if message.user_id is not None else {}
            if document.get("event") == CREDENTIALS_CHANGED:
                self._wanted.set()
            else:
                self._workspaces.mark_changed(WorkspaceId(str(UUID(document["id"]))))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            # It may concern anything, so refresh everything.
            self._wanted.set()

    async def _refresh(self, connections: Connections) -> None:
        try:
            async with asyncio.timeout(QUERY_SECONDS):
                in_use = connections.credentials
                guests = {each for each in in_use if is_guest(each)}
                invalid = await self._callers.revalidate(in_use - guests | self._guests.sessions(guests))
                for credential in invalid:
                    connections.end_credential(credential)
                await self._workspaces.refresh()
                for credential in await self._guests.find_ended(guests, invalid):
                    connections.end_credential(credential)
        except Exception as error:
            # Whatever the error, open connections continue, and new requests fail closed.
            if not is_outage(error):
                log.exception("the caches could not be refreshed")
            elif not self._down:
                log.warning("the database does not answer; new requests must wait: %s", error)
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
                await self._wanted.wait()
                await asyncio.sleep(DEBOUNCE_SECONDS)
        except TimeoutError:
            return
        finally:
            self._wanted.clear()
