"""A connection that looks open but carries nothing does not silence the events for long."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testkit import postgres
from testkit.waiting import DEADLINE_SECONDS
from worker.relay import EventRelay, RelayTiming

SOCKET = ".s.PGSQL.5432"
TIMING = RelayTiming(election=0.02, check=0.02, answer=0.2, silence=0.5, first_delay=0.02)


class Cable:
    """Passes everything on to PostgreSQL and back until it is cut: then nothing, not even an end."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._lines: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def plug(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(str(self._server))
        self._writers += [writer, server_writer]
        self._lines += [
            asyncio.create_task(self._pass_on(reader, server_writer)),
            asyncio.create_task(self._pass_on(server_reader, writer)),
        ]

    def cut(self) -> None:
        """Only what is plugged in now; a new connection works."""
        for line in self._lines:
            line.cancel()

    async def remove(self) -> None:
        self.cut()
        await asyncio.gather(*self._lines, return_exceptions=True)
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()


class Resyncs:
    """A bus that counts elections."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str] = asyncio.Queue()

    async def publish(self, user_id: str, message: str) -> None:
        raise AssertionError((user_id, message))

    async def broadcast(self, message: str) -> None:
        self.queue.put_nowait(message)


@pytest.fixture
async def cable(postgres_server: postgres.Server, tmp_path: Path) -> AsyncIterator[Cable]:
    cable = Cable(Path(postgres_server.address) / SOCKET)
    async with await asyncio.start_unix_server(cable.plug, tmp_path / SOCKET):
        yield cable
        await cable.remove()


async def test_a_relay_connects_again_when_its_connection_has_gone_silent(
    database_url: str, cable: Cable, tmp_path: Path
) -> None:
    bus = Resyncs()
    through_cable = f"{database_url.partition('?')[0]}?host={tmp_path}"
    relay = asyncio.create_task(EventRelay(through_cable, bus, TIMING).run())
    async with asyncio.timeout(DEADLINE_SECONDS):
        await bus.queue.get()
        cable.cut()
        await bus.queue.get()
    relay.cancel()
    with pytest.raises(asyncio.CancelledError):
        await relay
