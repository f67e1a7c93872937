"""The receiving end of live updates: one connection hears for everybody whom this process serves."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError

from codehub.adapters.redis.events import RESYNC_CHANNEL, user_channel
from codehub.adapters.redis.subscription_link import Link, SubscriptionTiming, create_subscriber
from codehub.ports import BusMessage

__all__ = ["RedisEventSubscription", "SubscriptionTiming"]

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
