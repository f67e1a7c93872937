"""Receives live updates for all followed users over one Redis connection."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import NoReturn, cast

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError

from codehub.adapters.redis.events import RESYNC_CHANNEL, user_channel
from codehub.backoff import delay_after
from codehub.ports import BusMessage


@dataclass(frozen=True)
class SubscriptionTiming:
    """Periods and timeouts in seconds."""

    check: float = 10.0
    response: float = 3.0
    confirm: float = 2.0
    first_delay: float = 0.2
    max_delay: float = 10.0

    def delay(self, failures: int) -> float:
        return delay_after(failures, self.first_delay, self.max_delay)


class SubscriberConnection:
    """One connection and its subscriptions. Every method raises when the connection is lost."""

    def __init__(self, pubsub: PubSub, timing: SubscriptionTiming) -> None:
        self._pubsub = pubsub
        self._timing = timing
        self._requested: set[str] = set()
        self._unconfirmed: Counter[str] = Counter()

    async def open(self, users: Set[str]) -> None:
        self._requested.update(users)
        self._unconfirmed.update(users)
        async with asyncio.timeout(self._timing.response):
            # Redis confirms in this order, so the last confirmation speaks for all.
            await self._pubsub.subscribe(*map(user_channel, users), RESYNC_CHANNEL)

    async def update(self, wanted: Set[str], unwanted: Set[str]) -> None:
        """Unsubscribe from unwanted users, then subscribe to new wanted ones, with one command each."""
        added, left = wanted - self._requested, unwanted & self._requested
        self._requested |= added
        self._requested -= left
        self._unconfirmed.update(added)
        if left:
            await self._pubsub.unsubscribe(*map(user_channel, left))
        if added:
            await self._pubsub.subscribe(*map(user_channel, added))

    def confirm(self, user_id: str) -> None:
        self._unconfirmed[user_id] -= 1
        if not self._unconfirmed[user_id]:
            # Keep no counts of confirmed users, or the dict would grow forever.
            del self._unconfirmed[user_id]

    def is_subscribed(self, user_id: str) -> bool:
        """Return whether the subscription is confirmed, and not about to be renewed."""
        return user_id in self._requested and user_id not in self._unconfirmed

    async def receive(self) -> Mapping[str, str]:
        message = await self._pubsub.get_message(timeout=self._timing.check)
        if message is None:
            # Only a response tells an idle connection from a dead one.
            async with asyncio.timeout(self._timing.response):
                await self._pubsub.ping()
            message = await self._pubsub.get_message(timeout=self._timing.response)
        if message is None:
            raise ConnectionLost("the connection has gone silent")
        return cast("Mapping[str, str]", message)


def create_subscriber(url: str, timing: SubscriptionTiming) -> Redis:
    return Redis.from_url(
        url,
        decode_responses=True,
        # In version 2, confirmations arrive like other messages.
        protocol=2,
        # Timeouts are handled in this module: the library's own can swallow a cancellation that arrives just
        # after a send (`asyncio.wait_for` of Python 3.11), and the task would never end.
        socket_timeout=None,
        socket_connect_timeout=timing.response,
        # No hidden reconnects: messages are lost with every connection.
        retry=Retry(NoBackoff(), retries=0, supported_errors=()),
    )


log = logging.getLogger(__name__)

Deliver = Callable[[BusMessage], None]

USER_PREFIX = user_channel("")


@dataclass(slots=True)
class _FollowedUser:
    subscribed: asyncio.Event = field(default_factory=asyncio.Event)
    # A caller gave up waiting and may have missed messages.
    late: bool = False


class RedisEventSubscription:
    """An `EventSubscription` that subscribes only to the channels of followed users."""

    def __init__(self, url: str, timing: SubscriptionTiming | None = None) -> None:
        self._url = url
        self._timing = timing or SubscriptionTiming()
        self._followed: dict[str, _FollowedUser] = {}
        self._changed: set[str] = set()
        self._has_changes = asyncio.Event()
        self._failures = 0

    async def follow(self, user_id: str) -> bool:
        if user_id not in self._followed:
            self._followed[user_id] = _FollowedUser()
            self._mark_changed(user_id)
        following = self._followed[user_id]
        try:
            async with asyncio.timeout(self._timing.confirm):
                await following.subscribed.wait()
        except TimeoutError:
            following.late = True
            return False
        return True

    def unfollow(self, user_id: str) -> None:
        if self._followed.pop(user_id, None) is not None:
            self._mark_changed(user_id)

    async def run(self, deliver: Deliver) -> NoReturn:
        async with create_subscriber(self._url, self._timing) as client:
            while True:
                try:
                    await self._serve(client, deliver)
                except* (RedisError, OSError) as lost:
                    if not self._failures:
                        log.warning("no live updates until Redis is back: %s", _reason(lost))
                self._failures += 1
                await asyncio.sleep(self._timing.delay(self._failures))

    def _mark_changed(self, user_id: str) -> None:
        self._changed.add(user_id)
        self._has_changes.set()

    async def _serve(self, client: Redis, deliver: Deliver) -> None:
        """Receive messages on one connection. Raise when it is lost."""
        async with client.pubsub() as pubsub:
            connection = SubscriberConnection(pubsub, self._timing)
            try:
                self._changed.clear()
                await connection.open(self._followed.keys())
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._send_changes(connection, deliver))
                    tasks.create_task(self._receive_messages(connection, deliver))
            finally:
                for following in self._followed.values():
                    following.subscribed.clear()

    async def _send_changes(self, connection: SubscriberConnection, deliver: Deliver) -> NoReturn:
        while True:
            await self._has_changes.wait()
            self._has_changes.clear()
            changed, self._changed = self._changed, set()
            wanted = changed & self._followed.keys()
            await connection.update(wanted, changed - wanted)
            for user_id in wanted:
                # A user who left and came back before Redis knew gets no new confirmation.
                self._confirm_if_subscribed(connection, user_id, deliver)

    async def _receive_messages(self, connection: SubscriberConnection, deliver: Deliver) -> NoReturn:
        is_up = False
        while True:
            message = await connection.receive()
            kind, channel = message["type"], message["channel"]
            user_id = None if channel == RESYNC_CHANNEL else str(channel).removeprefix(USER_PREFIX)
            if kind == "message":
                deliver(BusMessage(user_id, message["data"]))
            elif kind == "subscribe" and user_id is not None:
                connection.confirm(user_id)
                self._confirm_if_subscribed(connection, user_id, deliver)
            elif kind == "subscribe" and is_up:
                # The client library resubscribes by itself when its connection was closed.
                raise ConnectionLost("the connection was replaced")
            elif kind == "subscribe":
                is_up = True
                self._end_outage()
                deliver(BusMessage(None))

    def _end_outage(self) -> None:
        if self._failures:
            log.info("Redis is back: live updates continue")
        self._failures = 0

    def _confirm_if_subscribed(
        self, connection: SubscriberConnection, user_id: str, deliver: Deliver
    ) -> None:
        """Wake the callers that wait for this user, if its subscription is confirmed."""
        following = self._followed.get(user_id)
        if following is None or not connection.is_subscribed(user_id):
            return
        following.subscribed.set()
        if following.late:
            following.late = False
            deliver(BusMessage(user_id))


def _reason(lost: BaseExceptionGroup[BaseException]) -> str:
    return "; ".join(str(error) or type(error).__name__ for error in lost.exceptions)
