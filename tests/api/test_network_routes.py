"""Network policies over the API: owners choose, administrators limit, and both are recorded."""

from typing import Any

import httpx
import pytest

from codehub.db.egress import LogKey, add_to_log, hour_of
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import Verdict
from tests.api.harness import ApiHarness, Person

DEFAULT = {"mode": "open", "names": []}
LIST = {"mode": "allow-list", "names": ["*.example.org", "github.com"]}


async def change(person: Person, path: str, form: dict[str, Any]) -> httpx.Response:
    return await person.client.patch(f"/api/v1/{path}/network", json=form)


async def test_an_owner_tightens_and_returns_to_the_default(harness: ApiHarness) -> None:
    ada = await harness.person()
    path = f"workspaces/{(await ada.create())['id']}"
    before = (await ada.client.get(f"/api/v1/{path}/network")).json()
    assert before == {
        "enforced": True,
        "choice": None,
        "limit": None,
        "installation": DEFAULT,
        "owners_may_loosen": False,
        "effective": [DEFAULT],
    }
    names = ["GitHub.com.", "*.example.org", "github.com"]
    after = (await change(ada, path, {"mode": "allow-list", "names": names})).json()
    assert (after["choice"], after["effective"]) == (LIST, [DEFAULT, LIST])
    assert (await change(ada, path, {"mode": None})).json() == before


async def test_an_administrator_limits_and_the_owner_cannot_lift_it(harness: ApiHarness) -> None:
    ada, admin = await harness.person(), await harness.person(admin=True)
    workspace_id = (await ada.create())["id"]
    limited = await change(admin, f"admin/workspaces/{workspace_id}", LIST)
    assert limited.status_code == 200, limited.text
    assert (await change(ada, f"admin/workspaces/{workspace_id}", {"mode": None})).status_code == 403
    loosened = (await change(ada, f"workspaces/{workspace_id}", {"mode": "open"})).json()
    assert loosened["effective"] == [LIST, DEFAULT]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"mode": "allow-list", "names": ["127.1"]}, "is not a name"),
        ({"mode": "allow-list", "names": ["http://github.com"]}, "is not a name"),
        ({"mode": "none", "names": ["github.com"]}, "Only the mode allow-list takes names."),
        ({"mode": None, "names": ["github.com"]}, "Only the mode allow-list takes names."),
    ],
)
async def test_a_policy_that_means_nothing_is_explained(
    harness: ApiHarness, form: dict[str, Any], message: str
) -> None:
    ada = await harness.person()
    response = await change(ada, f"workspaces/{(await ada.create())['id']}", form)
    assert (response.status_code, message in response.text) == (400, True)


async def test_changes_are_in_the_audit_log(harness: ApiHarness) -> None:
    ada, admin = await harness.person(), await harness.person(admin=True)
    workspace_id = (await ada.create())["id"]
    await change(ada, f"workspaces/{workspace_id}", LIST)
    await change(admin, f"admin/workspaces/{workspace_id}", {"mode": "none"})
    entries = (await admin.client.get("/api/v1/admin/audit")).json()["items"]
    found = [
        (each["action"], each["actor"], each["detail"])
        for each in entries
        if each["target_id"] == workspace_id
    ]
    assert found == [
        ("network_limit", admin.username, {"mode": "none", "names": 0}),
        ("network_policy", ada.username, {"mode": "allow-list", "names": 2}),
    ]


async def test_the_owner_reads_what_was_connected_to(harness: ApiHarness) -> None:
    ada, eve = await harness.person(), await harness.person()
    workspace_id = (await ada.create())["id"]
    hour = hour_of(harness.context.now())
    counts = {
        LogKey(WorkspaceId(workspace_id), hour, "github.com", 443, Verdict.ALLOWED): 7,
        LogKey(WorkspaceId(workspace_id), hour, "169.254.169.254", 80, Verdict.REFUSED): 1,
    }
    async with harness.context.database.transaction() as session:
        await add_to_log(session, counts)
    path = f"/api/v1/workspaces/{workspace_id}/network/log"
    items = (await ada.client.get(path)).json()["items"]
    assert [(each["name"], each["port"], each["verdict"], each["count"]) for each in items] == [
        ("169.254.169.254", 80, "refused", 1),
        ("github.com", 443, "allowed", 7),
    ]
    assert (await eve.client.get(path)).status_code == 403
