"""WebSockets through the proxy: every message comes back unchanged and in order, or the socket closes."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

import aiohttp

from gameday.checks.findings import Findings, Invariant

CONNECT_SECONDS = 10.0
RECEIVE_SECONDS = 15.0
PAUSE_SECONDS = (0.1, 1.0)
MOST_MESSAGES = 40
# Messages of more than 64 bytes count as activity and keep a workspace running, so send few of them.
LONG_SHARE = 0.03
SHORT_BYTES, LONG_BYTES = 60, 100_000


@dataclass(frozen=True)
class EchoClient:
    """Acts like an open browser tab: connects to running workspaces and exchanges messages."""

    url: str
    token: str
    running: Callable[[], Iterable[str]]
    findings: Findings
    tally: Counter[str]
    random: Random

    async def run(self, until: asyncio.Event) -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while not until.is_set():
                if running := sorted(self.running()):
                    await self._visit(session, self.random.choice(running), until)
                await self._pause(until)

    async def _visit(self, session: aiohttp.ClientSession, workspace_id: str, until: asyncio.Event) -> None:
        address = f"{self.url}/w/{workspace_id}/ws"
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                socket = await session.ws_connect(address, headers=headers)
        except (aiohttp.ClientError, TimeoutError, OSError):
            self.tally["echoes: not connected"] += 1
            return
        self.tally["echoes: connected"] += 1
        async with socket:
            for _ in range(self.random.randint(1, MOST_MESSAGES)):
                if until.is_set() or not await self._exchange(socket, workspace_id):
                    return
                await self._pause(until)

    async def _exchange(self, socket: aiohttp.ClientWebSocketResponse, workspace_id: str) -> bool:
        """Send a message and receive its echo; return False if the socket has closed."""
        length = LONG_BYTES if self.random.random() < LONG_SHARE else SHORT_BYTES
        text = self.random.randbytes(length // 2).hex()
        try:
            await socket.send_str(text)
            message = await socket.receive(RECEIVE_SECONDS)
        except (aiohttp.ClientError, TimeoutError, OSError):
            message = None
        if message is None or message.type is not aiohttp.WSMsgType.TEXT:
            self.tally["echoes: disconnected"] += 1
            return False
        self.tally["echoes: received"] += 1
        problems = [] if message.data == text else [f"sent {text[:20]}…, received {message.data[:20]}…"]
        self.findings.record(Invariant.ECHOES, problems, workspace_id)
        return True

    async def _pause(self, until: asyncio.Event) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), self.random.uniform(*PAUSE_SECONDS))
