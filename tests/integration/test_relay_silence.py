"""A connection that is open but carries no data interrupts live updates only for a moment."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testkit import postgres
from testkit.network_faults import FaultRelay
from testkit.waiting import DEADLINE_SECONDS
from worker.relay import EventRelay, RelayTiming

SOCKET = ".s.PGSQL.5432"
TIMING = RelayTiming(election=0.02, check=0.02, response=0.2, silence=0.5, first_delay=0.02)


class Resyncs:
    """A bus that counts elections."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str] = asyncio.Queue()

    async def publish(self, user_id: str, message: str) -> None:
        raise AssertionError((user_id, message))

    async def broadcast(self, message: str) -> None:
        self.queue.put_nowait(message)


@pytest.fixture
async def connection(postgres_server: postgres.Server, tmp_path: Path) -> AsyncIterator[FaultRelay]:
    """A connection to PostgreSQL through a socket in `tmp_path`."""
    relay = FaultRelay(Path(postgres_server.address) / SOCKET, listen_on=tmp_path / SOCKET)
    async with relay.opened():
        yield relay


async def test_a_relay_reconnects_when_its_connection_has_gone_silent(
    database_url: str, connection: FaultRelay, tmp_path: Path
) -> None:
    bus = Resyncs()
    url = f"{database_url.partition('?')[0]}?host={tmp_path}"
    relay = asyncio.create_task(EventRelay(url, bus, TIMING).run())
    async with asyncio.timeout(DEADLINE_SECONDS):
        await bus.queue.get()
        connection.go_silent()
        # Only the existing connections are silent now.
        connection.resume()
        await bus.queue.get()
    relay.cancel()
    with pytest.raises(asyncio.CancelledError):
        await relay
