"""The connections of all workspaces, for administrators: filters and pages."""

from datetime import timedelta
from typing import Any

import pytest

from codehub.db.egress import LogKey, add_to_log, hour_of
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import Verdict
from testkit.rows import new_workspace_id
from tests.api.harness import ApiHarness, Person

EGRESS = "/api/v1/admin/egress"


async def connected(harness: ApiHarness, workspace_id: str, *names: str, hours_ago: int = 0) -> None:
    """Count one connection to each name; those that begin with `bad` were refused."""
    hour = hour_of(harness.context.now()) - timedelta(hours=hours_ago)
    keys = (
        LogKey(
            WorkspaceId(workspace_id),
            hour,
            name,
            443,
            Verdict.REFUSED if name.startswith("bad") else Verdict.ALLOWED,
        )
        for name in names
    )
    async with harness.context.database.transaction() as session:
        await add_to_log(session, dict.fromkeys(keys, 1))


async def read(admin: Person, **filters: Any) -> list[tuple[str | None, str | None, str]]:  # noqa: ANN401
    response = await admin.client.get(EGRESS, params=filters)
    assert response.status_code == 200, response.text
    return [(each["owner"], each["workspace"], each["name"]) for each in response.json()["items"]]


async def test_filters_find_whose_workspace_connected_where(harness: ApiHarness) -> None:
    ada, ben, admin = await harness.person(), await harness.person(), await harness.person(admin=True)
    (of_ada, of_ben), removed = [await each.create() for each in (ada, ben)], new_workspace_id()
    await connected(harness, of_ada["id"], "github.com", "bad.example", hours_ago=1)
    await connected(harness, of_ben["id"], "bad.example")
    await connected(harness, removed, "gone.example")
    ada_bad = (ada.username, of_ada["name"], "bad.example")
    ben_bad = (ben.username, of_ben["name"], "bad.example")
    assert await read(admin, user=ada.username.upper()) == [ada_bad, (*ada_bad[:2], "github.com")]
    assert await read(admin, workspace=of_ben["id"]) == [ben_bad]
    assert await read(admin, workspace=str(removed)) == [(None, None, "gone.example")]
    assert await read(admin, workspace=of_ada["id"], refused=True) == [ada_bad]
    assert await read(admin, workspace=of_ada["id"], name="HUB") == [(*ada_bad[:2], "github.com")]
    assert await read(admin, name="%") == []


async def test_pages_end_and_overlap_nowhere(harness: ApiHarness) -> None:
    admin = await harness.person(admin=True)
    workspace_id = (await admin.create())["id"]
    for hours_ago in range(3):
        await connected(harness, workspace_id, "a.example", "b.example", "bad.example", hours_ago=hours_ago)
    seen: list[tuple[str, str]] = []
    cursor: dict[str, str] = {}
    while True:
        query: dict[str, str | int] = {"workspace": workspace_id, "limit": 2, **cursor}
        page = (await admin.client.get(EGRESS, params=query)).json()
        seen += [(each["hour"], each["name"]) for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert len(seen) == len(set(seen)) == 9
    assert [hour for hour, _ in seen] == sorted((hour for hour, _ in seen), reverse=True)


@pytest.mark.parametrize("values", ["7", "[]", '["x", "y", "z", 1, "allowed"]'])
async def test_a_cursor_that_is_none_is_refused(harness: ApiHarness, values: str) -> None:
    admin = await harness.person(admin=True)
    response = await admin.client.get(EGRESS, params={"cursor": values})
    assert response.status_code == 400
    assert "Unknown cursor" in response.text
