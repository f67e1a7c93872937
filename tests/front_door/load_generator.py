"""Somebody who works all the time: in an IDE over a WebSocket and over HTTP, and with the API."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from codehub.domain.conditions import WorkspaceId
from testkit.waiting import until
from tests.front_door.harness import FrontDoorHarness, Person

# Nothing may take longer, whatever is down.
PATIENCE_SECONDS = 25.0
PAUSE_SECONDS = 0.02
ENOUGH = 10


@dataclass
class Load:
    """What came of everything so far."""

    harness: FrontDoorHarness
    person: Person
    workspace_id: WorkspaceId
    echoes: int = 0
    statuses: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    async def echo(self) -> None:
        """On one WebSocket for the whole time; a missing echo is an error."""
        async with self.harness.client.ws_connect(
            f"{self.harness.url}/w/{self.workspace_id}/ws", headers=self.person.bearer
        ) as socket:
            while True:
                await socket.send_str(str(self.echoes))
                message = await socket.receive(timeout=PATIENCE_SECONDS)
                assert (message.type, message.data) == (aiohttp.WSMsgType.TEXT, str(self.echoes))
                self.echoes += 1
                await asyncio.sleep(PAUSE_SECONDS)

    async def ask_ide(self) -> None:
        await self._ask("ide", f"/w/{self.workspace_id}/x", self.person.cookie)

    async def ask_api(self) -> None:
        await self._ask("api", "/api/v1/workspaces", self.person.bearer)

    async def until_well(self) -> None:
        """Until everything has worked for a while."""
        marks = {name: len(self.statuses[name]) for name in ("ide", "api")}
        echoes = self.echoes + ENOUGH

        async def all_well() -> bool:
            latest = [self.statuses[name][mark:][-ENOUGH:] for name, mark in marks.items()]
            return self.echoes >= echoes and all(each == [200] * ENOUGH for each in latest)

        await until(all_well, "everything works")

    async def until_seen(self, name: str, status: int) -> None:
        mark = len(self.statuses[name])

        async def seen() -> bool:
            return status in self.statuses[name][mark:]

        await until(seen, f"{status} from {name}")

    async def _ask(self, name: str, path: str, headers: dict[str, str]) -> None:
        while True:
            async with asyncio.timeout(PATIENCE_SECONDS):
                self.statuses[name].append((await self.harness.ask(path, headers)).status)
            await asyncio.sleep(PAUSE_SECONDS)


@asynccontextmanager
async def under_load(
    harness: FrontDoorHarness, person: Person, workspace_id: WorkspaceId
) -> AsyncIterator[Load]:
    """From when everything works; whatever then ends, or takes too long, fails the test."""
    load = Load(harness, person, workspace_id)
    parts: tuple[Callable[[], Coroutine[None, None, None]], ...] = (load.echo, load.ask_ide, load.ask_api)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(part()) for part in parts]
        await load.until_well()
        yield load
        for task in running:
            task.cancel()
