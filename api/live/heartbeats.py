"""Heartbeats for every client from one task: a wheel whose seats are served one after the other."""

import asyncio
from collections.abc import Iterator
from typing import NoReturn

from api.live.client import LiveClient
from api.live.wire import HEARTBEAT

SEATS = 30


class HeartbeatWheel:
    """Clients are spread evenly over the seats, so that they do not all wake at once."""

    def __init__(self, round_seconds: float) -> None:
        self._pause = round_seconds / SEATS
        self._seats: list[set[LiveClient]] = [set() for _ in range(SEATS)]
        self._next_seat = 0
        self.stalled = 0

    def __len__(self) -> int:
        return sum(map(len, self._seats))

    def __iter__(self) -> Iterator[LiveClient]:
        return (client for seat in self._seats for client in seat)

    def add(self, client: LiveClient) -> None:
        client.seat = self._next_seat
        self._seats[client.seat].add(client)
        self._next_seat = (self._next_seat + 1) % SEATS

    def remove(self, client: LiveClient) -> None:
        self._seats[client.seat].discard(client)

    async def run(self) -> NoReturn:
        while True:
            for seat in self._seats:
                await asyncio.sleep(self._pause)
                self.stalled += sum(not client.beat(HEARTBEAT) for client in seat)
