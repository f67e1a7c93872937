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


log = logging.getLogger(__name__)

Deliver = Callable[[BusMessage], None]

USER_PREFIX = user_channel("")


@dataclass(slots=True)
class _Following:
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    # Whoever waited has gone on without it, and may have missed something.
    late: bool = False


class RedisEventSubscription:
    """An `EventSubscription` that subscribes to the channels of those followed, and to no others."""

    def __init__(self, url: str, timing: SubscriptionTiming | None = None) -> None:
        self._url = url
        self._timing = timing or SubscriptionTiming()
        self._followed: dict[str, _Following] = {}
        self._touched: set[str] = set()
        self._touch = asyncio.Event()
        self._failures = 0

    async def follow(self, user_id: str) -> bool:
        if user_id not in self._followed:
            self._followed[user_id] = _Following()
            self._look_at(user_id)
        following = self._followed[user_id]
        try:
            async with asyncio.timeout(self._timing.confirm):
                await following.heard.wait()
        except TimeoutError:
            following.late = True
            return False
        return True

    def unfollow(self, user_id: str) -> None:
        if self._followed.pop(user_id, None) is not None:
            self._look_at(user_id)

    async def run(self, deliver: Deliver) -> NoReturn:
        async with create_subscriber(self._url, self._timing) as client:
            while True:
                try:
                    await self._serve(client, deliver)
                except* (RedisError, OSError) as lost:
                    if not self._failures:
                        log.warning("live updates wait for Redis: %s", _reason(lost))
                self._failures += 1
                await asyncio.sleep(self._timing.delay(self._failures))

    def _look_at(self, user_id: str) -> None:
        self._touched.add(user_id)
        self._touch.set()

    async def _serve(self, client: Redis, deliver: Deliver) -> None:
        """Hear on one connection; raise when it is lost."""
        async with client.pubsub() as pubsub:
            link = Link(pubsub, self._timing)
            try:
                self._touched.clear()
                await link.open(self._followed.keys())
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._ask(link, deliver))
                    tasks.create_task(self._hear(link, deliver))
            finally:
                for following in self._followed.values():
                    following.heard.clear()

    async def _ask(self, link: Link, deliver: Deliver) -> NoReturn:
        while True:
            await self._touch.wait()
            self._touch.clear()
            touched, self._touched = self._touched, set()
            wanted = touched & self._followed.keys()
            await link.ask(wanted, touched - wanted)
            for user_id in wanted:
                # Nothing is confirmed for one who left and came back before Redis was told of either.
                self._settle(link, user_id, deliver)

    async def _hear(self, link: Link, deliver: Deliver) -> NoReturn:
        is_up = False
        while True:
            message = await link.receive()
            kind, channel = message["type"], message["channel"]
            user_id = None if channel == RESYNC_CHANNEL else str(channel).removeprefix(USER_PREFIX)
            if kind == "message":
                deliver(BusMessage(user_id, message["data"]))
            elif kind == "subscribe" and user_id is not None:
                link.confirm(user_id)
                self._settle(link, user_id, deliver)
            elif kind == "subscribe" and is_up:
                # The client library subscribes again by itself when it finds its connection closed.
                raise ConnectionLost("the connection was replaced by another one")
            elif kind == "subscribe":
                is_up = True
                self._end_outage()
                deliver(BusMessage(None))

    def _end_outage(self) -> None:
        if self._failures:
            log.info("live updates hear Redis again")
        self._failures = 0

    def _settle(self, link: Link, user_id: str, deliver: Deliver) -> None:
        """Tell those who wait for this user, if it is heard."""
        following = self._followed.get(user_id)
        if following is None or not link.hears(user_id):
            return
        following.heard.set()
        if following.late:
            following.late = False
            deliver(BusMessage(user_id))


def _reason(lost: BaseExceptionGroup[BaseException]) -> str:
    return "; ".join(str(error) or type(error).__name__ for error in lost.exceptions)
