"""An in-memory event subscription that tests can disconnect and delay."""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from codehub.ports import BusMessage


class FakeSubscription:
    def __init__(self) -> None:
        self.followed: set[str] = set()
        self.is_up = True
        # While cleared, follow() waits.
        self.confirms = asyncio.Event()
        self.confirms.set()
        self._deliver: Callable[[BusMessage], None] | None = None

    async def run(self, deliver: Callable[[BusMessage], None]) -> NoReturn:
        self._deliver = deliver
        self._send(BusMessage(None))
        while True:
            await asyncio.Event().wait()

    async def follow(self, user_id: str) -> bool:
        self.followed.add(user_id)
        await self.confirms.wait()
        return self.is_up and self._deliver is not None

    def unfollow(self, user_id: str) -> None:
        self.followed.discard(user_id)

    def publish(self, user_id: str, payload: str) -> None:
        if user_id in self.followed:
            self._send(BusMessage(user_id, payload))

    def broadcast(self, payload: str) -> None:
        self._send(BusMessage(None, payload))

    def lose(self) -> None:
        self.is_up = False

    def restore(self) -> None:
        self.is_up = True
        self._send(BusMessage(None))

    def _send(self, message: BusMessage) -> None:
        if self.is_up and self._deliver is not None:
            self._deliver(message)
