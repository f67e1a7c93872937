"""A person who works all the time: in the IDE, over a WebSocket and HTTP, and with the API."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from codehub.domain.conditions import WorkspaceId
from testkit.waiting import until
from tests.front_door.harness import FrontDoorHarness, Person

# No request may take longer, whatever is down.
MAX_SECONDS = 25.0
PAUSE_SECONDS = 0.02
ENOUGH = 10


@dataclass
class LoadGenerator:
    """Sends requests and messages all the time, and records the results."""

    harness: FrontDoorHarness
    person: Person
    workspace_id: WorkspaceId
    echoes: int = 0
    statuses: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    async def echo(self) -> None:
        """Use one WebSocket all the time; a missing echo fails the test."""
        async with await self.harness.connect(f"/w/{self.workspace_id}/ws", self.person.bearer) as socket:
            while True:
                await socket.send_str(str(self.echoes))
                message = await socket.receive(timeout=MAX_SECONDS)
                assert (message.type, message.data) == (aiohttp.WSMsgType.TEXT, str(self.echoes))
                self.echoes += 1
                await asyncio.sleep(PAUSE_SECONDS)

    async def request_ide(self) -> None:
        await self._request("ide", f"/w/{self.workspace_id}/x", self.person.cookie)

    async def request_api(self) -> None:
        await self._request("api", "/api/v1/workspaces", self.person.bearer)

    async def wait_until_healthy(self) -> None:
        """Wait until everything has worked for a while."""
        marks = {name: len(self.statuses[name]) for name in ("ide", "api")}
        echoes = self.echoes + ENOUGH

        async def works() -> bool:
            latest = [self.statuses[name][mark:][-ENOUGH:] for name, mark in marks.items()]
            return self.echoes >= echoes and all(each == [200] * ENOUGH for each in latest)

        await until(works, "everything works")

    async def wait_until_seen(self, name: str, status: int) -> None:
        mark = len(self.statuses[name])

        async def seen() -> bool:
            return status in self.statuses[name][mark:]

        await until(seen, f"{status} from {name}")

    async def _request(self, name: str, path: str, headers: dict[str, str]) -> None:
        while True:
            # A killed API can cut a response short; the IDE is never killed.
            cut = (aiohttp.ClientPayloadError,) if name == "api" else ()
            with contextlib.suppress(*cut):
                async with asyncio.timeout(MAX_SECONDS):
                    self.statuses[name].append((await self.harness.request(path, headers)).status)
            await asyncio.sleep(PAUSE_SECONDS)


@asynccontextmanager
async def generating_load(
    harness: FrontDoorHarness, person: Person, workspace_id: WorkspaceId
) -> AsyncIterator[LoadGenerator]:
    """Generate load, starting when everything works. A lost connection or slow response fails the test."""
    load = LoadGenerator(harness, person, workspace_id)
    parts: tuple[Callable[[], Coroutine[None, None, None]], ...] = (
        load.echo,
        load.request_ide,
        load.request_api,
    )
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(part()) for part in parts]
        await load.wait_until_healthy()
        yield load
        for task in running:
            task.cancel()
