"""The checker at the API: it asks for each workspace as its owner, through the front door."""

from collections.abc import Mapping
from typing import Any

import httpx

from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState
from gameday.checks.rows import Row
from gameday.stage.stage import Stage

WORKSPACES = "/api/v1/workspaces"
TIMEOUT_SECONDS = 30.0
# Long enough for nothing to happen by itself while it is looked at.
AN_HOUR = 3600
# More than anybody owns, so that there is only one page.
PAGE_SIZE = 100


class Asker:
    """One HTTP client, and everybody's token."""

    def __init__(self, stage: Stage) -> None:
        self._tokens = {user.user_id: user.token for user in stage.users}
        self._client = httpx.AsyncClient(base_url=stage.url, timeout=httpx.Timeout(TIMEOUT_SECONDS))

    async def close(self) -> None:
        await self._client.aclose()

    async def rest(self, row: Row) -> bool:
        """Ask for STANDBY, to stay there; False if that cannot be had right now."""
        form = {"desired_state": DesiredState.STANDBY, "archive_ttl_seconds": AN_HOUR}
        return await self._ask("PATCH", row.owner_id, _path(row.workspace_id), form) is not None

    async def recover(self, row: Row) -> bool:
        """Ask to look again and go on; never to give up files."""
        path = f"{_path(row.workspace_id)}/recover"
        return await self._ask("POST", row.owner_id, path, {"choice": "retry"}) is not None

    async def list_workspaces(self, owner_id: str) -> dict[str, dict[str, Any]] | None:
        """All that this person sees, by id."""
        page = await self._ask("GET", owner_id, f"{WORKSPACES}?limit={PAGE_SIZE}", None)
        return {each["id"]: each for each in page["items"]} if page is not None else None

    async def _ask(
        self, method: str, owner_id: str, path: str, form: Mapping[str, object] | None
    ) -> dict[str, Any] | None:
        """The answer; None for a refusal or an outage, after which one asks again."""
        headers = {"Authorization": f"Bearer {self._tokens[owner_id]}"}
        try:
            answer = await self._client.request(method, path, json=form, headers=headers)
        except httpx.TransportError:
            return None
        if not answer.is_success:
            return None
        document: dict[str, Any] = answer.json()
        return document


def _path(workspace_id: WorkspaceId) -> str:
    return f"{WORKSPACES}/{workspace_id}"
