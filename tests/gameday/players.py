"""A workspace on a stage that tests control through the API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from gameday.stage.stage import Stage
from testkit.waiting import until

WORKSPACES = "/api/v1/workspaces"
TIMEOUT = httpx.Timeout(60)


class Player:
    """One workspace and requests about it."""

    def __init__(self, stage: Stage, client: httpx.AsyncClient, workspace_id: str) -> None:
        self.stage = stage
        self.client = client
        self.workspace_id = workspace_id

    async def request(self, desired: str) -> httpx.Response:
        return await self.client.patch(
            f"{WORKSPACES}/{self.workspace_id}", json={"desired_state": desired}, params={"wait": 5}
        )

    async def reach(self, desired: str) -> None:
        """Request the state until the workspace is in it."""

        async def is_reached() -> bool:
            try:
                response = await self.request(desired)
            except httpx.TransportError:
                return False
            return response.status_code == 200 and response.json()["phase"] == desired

        await until(is_reached, f"the workspace is {desired}")

    async def is_purged(self) -> bool:
        """Request the purge again, because it is refused while an operation runs."""
        path = f"{WORKSPACES}/{self.workspace_id}"
        await self.client.delete(path, params={"purge": True})
        response = await self.client.get(path)
        return response.status_code == 404 or response.json().get("phase") == "DELETED"

    async def read(self) -> dict[str, Any]:
        document: dict[str, Any] = (await self.client.get(f"{WORKSPACES}/{self.workspace_id}")).json()
        return document


@asynccontextmanager
async def new_workspace(stage: Stage) -> AsyncIterator[Player]:
    """Create a workspace and purge it at the end of the block."""
    headers = {"Authorization": f"Bearer {stage.users[0].token}"}
    async with httpx.AsyncClient(base_url=stage.url, headers=headers, timeout=TIMEOUT) as client:
        created = await client.post(WORKSPACES, json={"name": "played"})
        assert created.status_code == 201, created.text
        player = Player(stage, client, created.json()["id"])
        try:
            yield player
        finally:
            await stage.wait_ready()
            await until(player.is_purged, "the workspace is gone")
