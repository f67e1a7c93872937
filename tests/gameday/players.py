"""Somebody who uses a stage in an orderly way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from gameday.stage.stage import Stage
from testkit.waiting import until

WORKSPACES = "/api/v1/workspaces"
PATIENCE = httpx.Timeout(60)


class Player:
    """One workspace and what can be asked of it."""

    def __init__(self, stage: Stage, client: httpx.AsyncClient, workspace_id: str) -> None:
        self.stage = stage
        self.client = client
        self.workspace_id = workspace_id

    async def ask(self, desired: str) -> httpx.Response:
        return await self.client.patch(
            f"{WORKSPACES}/{self.workspace_id}", json={"desired_state": desired}, params={"wait": 5}
        )

    async def go(self, desired: str) -> None:
        async def arrived() -> bool:
            try:
                answer = await self.ask(desired)
            except httpx.TransportError:
                return False
            return answer.status_code == 200 and answer.json()["phase"] == desired

        await until(arrived, f"the workspace is {desired}")

    async def is_purged(self) -> bool:
        """Ask for it as long as that is refused, because something is under way."""
        path = f"{WORKSPACES}/{self.workspace_id}"
        await self.client.delete(path, params={"purge": True})
        answer = await self.client.get(path)
        return answer.status_code == 404 or answer.json().get("phase") == "DELETED"

    async def read(self) -> dict[str, Any]:
        document: dict[str, Any] = (await self.client.get(f"{WORKSPACES}/{self.workspace_id}")).json()
        return document


@asynccontextmanager
async def playing(stage: Stage) -> AsyncIterator[Player]:
    """A new workspace that is purged at the end of the block."""
    headers = {"Authorization": f"Bearer {stage.users[0].token}"}
    async with httpx.AsyncClient(base_url=stage.url, headers=headers, timeout=PATIENCE) as client:
        created = await client.post(WORKSPACES, json={"name": "played"})
        assert created.status_code == 201, created.text
        player = Player(stage, client, created.json()["id"])
        try:
            yield player
        finally:
            await stage.wait_ready()
            await until(player.is_purged, "the workspace is gone")
