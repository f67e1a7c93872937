"""One connection that hears for many users, and what it has been asked for; nothing outlives it."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import cast

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost

from codehub.adapters.redis.events import RESYNC_CHANNEL, user_channel
from codehub.backoff import delay_after


@dataclass(frozen=True)
class SubscriptionTiming:
    """How often, and how long, in seconds."""

    check: float = 10.0
    answer: float = 3.0
    confirm: float = 2.0
    first_delay: float = 0.2
    max_delay: float = 10.0

    def delay(self, failures: int) -> float:
        return delay_after(failures, self.first_delay, self.max_delay)


class Link:
    """Every method raises when the connection is lost; then it is of no use any more."""

    def __init__(self, pubsub: PubSub, timing: SubscriptionTiming) -> None:
        self._pubsub = pubsub
        self._timing = timing
        self._asked: set[str] = set()
        self._unconfirmed: Counter[str] = Counter()

    async def open(self, users: Set[str]) -> None:
        self._asked.update(users)
        self._unconfirmed.update(users)
        async with asyncio.timeout(self._timing.answer):
            # Redis confirms in this order, so the last confirmation speaks for all.
            await self._pubsub.subscribe(*map(user_channel, users), RESYNC_CHANNEL)

    async def ask(self, wanted: Set[str], unwanted: Set[str]) -> None:
        """Leave those, then subscribe to the new ones among these, many in one command."""
        added, left = wanted - self._asked, unwanted & self._asked
        self._asked |= added
        self._asked -= left
        self._unconfirmed.update(added)
        if left:
            await self._pubsub.unsubscribe(*map(user_channel, left))
        if added:
            await self._pubsub.subscribe(*map(user_channel, added))

    def confirm(self, user_id: str) -> None:
        self._unconfirmed[user_id] -= 1
        if not self._unconfirmed[user_id]:
            # Users come and go; those who are settled need no count.
            del self._unconfirmed[user_id]

    def hears(self, user_id: str) -> bool:
        """False also for one that Redis has yet to leave and to subscribe to again."""
        return user_id in self._asked and user_id not in self._unconfirmed

    async def receive(self) -> Mapping[str, str]:
        message = await self._pubsub.get_message(timeout=self._timing.check)
        if message is None:
            # An idle connection and a dead one look alike until one of them answers.
            async with asyncio.timeout(self._timing.answer):
                await self._pubsub.ping()
            message = await self._pubsub.get_message(timeout=self._timing.answer)
        if message is None:
            raise ConnectionLost("the connection has gone silent")
        return cast("Mapping[str, str]", message)


def create_subscriber(url: str, timing: SubscriptionTiming) -> Redis:
    return Redis.from_url(
        url,
        decode_responses=True,
        # In which answers to a subscriber are messages like all others.
        protocol=2,
        # Times are kept here: with one of its own the library loses a cancellation that comes at the moment
        # when something has been sent (`asyncio.wait_for` of Python 3.11), and nothing would ever end.
        socket_timeout=None,
        socket_connect_timeout=timing.answer,
        # No error may be healed behind our back: messages are lost with every connection.
        retry=Retry(NoBackoff(), retries=0, supported_errors=()),
    )
