"""One connection through the fault proxy: what goes wrong is looked up for every piece of it."""

import asyncio
from contextlib import suppress
from typing import TypeAlias

from gameday.faults.modes import Answering, Away, Cutting, Silent, Slow, Troubles
from gameday.faults.s3_errors import answer_with_error

CHUNK_BYTES = 65_536
# Small enough that a slow connection moves in many steps.
SLOW_CHUNK_BYTES = 4_096
End: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Cut(Exception):
    """The connection shall end here, in the middle of whatever goes on."""


class Connection:
    """A client and the server, and the bytes between them."""

    def __init__(self, troubles: Troubles, client: End, server: End) -> None:
        self._troubles = troubles
        self._client = client
        self._server = server
        self._client_port: int = client[1].get_extra_info("peername")[1]
        self._passed_bytes = 0

    async def run(self) -> None:
        """Return when one of them has nothing more to say; raise Cut to have it cut off."""
        pumps = {
            asyncio.create_task(self._pass_requests()),
            asyncio.create_task(self._pump(self._server[0], self._client[1])),
        }
        try:
            ended, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        for pump in ended:
            if unanswered := pump.result():
                await self._answer(unanswered)

    async def _pass_requests(self) -> bytes:
        return await self._pump(self._client[0], self._server[1], answering=True)

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, answering: bool = False
    ) -> bytes:
        """Return nothing at the end; or what was not passed on because it shall be answered here."""
        while chunk := await self._receive(source):
            if answering and isinstance(self._troubles.mode, Answering):
                return chunk
            await self._slow_down(len(chunk))
            allowed = self._allowed(len(chunk))
            target.write(chunk[:allowed])
            await target.drain()
            if allowed < len(chunk):
                self._troubles.counts["connections cut"] += 1
                raise Cut
        return b""

    async def _receive(self, source: asyncio.StreamReader) -> bytes:
        size = SLOW_CHUNK_BYTES if isinstance(self._troubles.mode, Slow) else CHUNK_BYTES
        chunk = await source.read(size)
        if chunk and isinstance(self._troubles.mode, Silent):
            await self._troubles.hold_back(self._client_port)
        return chunk

    async def _slow_down(self, size: int) -> None:
        mode = self._troubles.mode
        if isinstance(mode, Slow):
            self._troubles.counts["bytes slowed down"] += size
            with suppress(TimeoutError):
                await asyncio.wait_for(self._troubles.changed.wait(), size / mode.bytes_per_second)

    def _allowed(self, size: int) -> int:
        """How much of this may go through; what went through before a trouble does not count."""
        mode = self._troubles.mode
        if isinstance(mode, Away):
            return 0
        if not isinstance(mode, Cutting):
            self._passed_bytes = 0
            return size
        allowed = min(size, mode.after_bytes - self._passed_bytes)
        self._passed_bytes += allowed
        return allowed

    async def _answer(self, request: bytes) -> None:
        mode = self._troubles.mode
        # The trouble may be over by now: then the connection just ends.
        if isinstance(mode, Answering):
            self._troubles.counts[f"answers {mode.status}"] += 1
            await answer_with_error(mode.status, request, *self._client)
