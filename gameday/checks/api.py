"""Checks through the API: ask for workspaces as their owners, and compare live updates with the truth."""

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
# Long enough that the workspace does not change by itself during the check.
ONE_HOUR = 3600
# More than any user owns, so one page is enough.
PAGE_SIZE = 100

POLL_SECONDS = 0.5
# A broken stream reconnects within seconds.
FOLLOWER_SECONDS = 60.0
# The fields that trigger a live update; the time of the last use does not.
LIVE_FIELDS = ("phase", "operation", "desired_state", "name", "error", "deleted_at", "archive_ttl_seconds")

Workspaces = Mapping[str, Mapping[str, Any]]


class ApiClient:
    """One HTTP client with the tokens of all users."""

    def __init__(self, stage: Stage) -> None:
        self._tokens = {user.user_id: user.token for user in stage.users}
        self._client = httpx.AsyncClient(base_url=stage.url, timeout=httpx.Timeout(TIMEOUT_SECONDS))

    async def close(self) -> None:
        await self._client.aclose()

    async def request_standby(self, row: Row) -> bool:
        """Ask for STANDBY without a change for an hour; return whether the API accepted it."""
        form = {"desired_state": DesiredState.STANDBY, "archive_ttl_seconds": ONE_HOUR}
        return await self._request("PATCH", row.owner_id, _path(row.workspace_id), form) is not None

    async def recover(self, row: Row) -> bool:
        """Retry after an error; never give up files. Return whether the API accepted it."""
        path = f"{_path(row.workspace_id)}/recover"
        return await self._request("POST", row.owner_id, path, {"choice": "retry"}) is not None

    async def list_workspaces(self, owner_id: str) -> dict[str, dict[str, Any]] | None:
        """Return the workspaces that this user sees, by id, or None if the API does not answer."""
        page = await self._request("GET", owner_id, f"{WORKSPACES}?limit={PAGE_SIZE}", None)
        return {each["id"]: each for each in page["items"]} if page is not None else None

    async def _request(
        self, method: str, owner_id: str, path: str, form: Mapping[str, object] | None
    ) -> dict[str, Any] | None:
        """Return the response, or None if the request was refused or failed; the caller tries again."""
        headers = {"Authorization": f"Bearer {self._tokens[owner_id]}"}
        try:
            response = await self._client.request(method, path, json=form, headers=headers)
        except httpx.TransportError:
            return None
        if not response.is_success:
            return None
        document: dict[str, Any] = response.json()
        return document


def _path(workspace_id: WorkspaceId) -> str:
    return f"{WORKSPACES}/{workspace_id}"


async def check_follower(api: ApiClient, user_id: str, follower: Follower, findings: Findings) -> None:
    """Wait until a user's live updates match the API's list."""
    deadline = time.monotonic() + FOLLOWER_SECONDS
    while True:
        actual = await api.list_workspaces(user_id)
        problems = (
            ["The API does not answer."] if actual is None else list(compare(follower.workspaces(), actual))
        )
        if not problems or time.monotonic() > deadline:
            findings.record(Invariant.FOLLOWERS, problems, checks=1 + len(actual or ()))
            return
        await asyncio.sleep(POLL_SECONDS)


def compare(shown: Workspaces, actual: Workspaces) -> Iterator[str]:
    for workspace_id in sorted(shown.keys() - actual.keys()):
        yield f"{workspace_id} is still shown as {shown[workspace_id]['phase']}, but it is gone."
    for workspace_id in sorted(actual.keys() - shown.keys()):
        yield f"{workspace_id} is {actual[workspace_id]['phase']}, but no live update said so."
    for workspace_id in sorted(actual.keys() & shown.keys()):
        for field in LIVE_FIELDS:
            was, value = shown[workspace_id].get(field), actual[workspace_id].get(field)
            if was != value:
                yield f"{workspace_id} is shown with {field} {was}, but it is {value}."
