"""The checker at the API: it asks for each workspace as its owner, through the front door."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState
from gameday.checks.findings import Findings, Invariant
from gameday.checks.rows import Row
from gameday.people.followers import Follower
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


POLL_SECONDS = 0.5
# A stream that was cut comes back within seconds.
PATIENCE_SECONDS = 60.0
# What an event is sent for; the time of the last use is not among it.
TOLD = ("phase", "operation", "desired_state", "name", "error", "deleted_at", "archive_ttl_seconds")

Workspaces = Mapping[str, Mapping[str, Any]]


async def check_follower(asker: Asker, user_id: str, follower: Follower, findings: Findings) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        true = await asker.list_workspaces(user_id)
        problems = ["The API does not answer."] if true is None else list(compare(follower.state(), true))
        if not problems or time.monotonic() > deadline:
            findings.note(Invariant.FOLLOWERS, problems, checks=1 + len(true or ()))
            return
        await asyncio.sleep(POLL_SECONDS)


def compare(told: Workspaces, true: Workspaces) -> Iterator[str]:
    for workspace_id in sorted(told.keys() - true.keys()):
        yield f"{workspace_id} is still shown as {told[workspace_id]['phase']}, but it is gone."
    for workspace_id in sorted(true.keys() - told.keys()):
        yield f"{workspace_id} is {true[workspace_id]['phase']}, but nobody was told of it."
    for workspace_id in sorted(true.keys() & told.keys()):
        for field in TOLD:
            shown, found = told[workspace_id].get(field), true[workspace_id].get(field)
            if shown != found:
                yield f"{workspace_id} is shown with {field} {shown}, but it is {found}."
