"""The disk limit over the API: a warning, a refusal that says what to do, and an administrator's way out."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from codehub.db.disk_usage import store_measurement
from codehub.domain.conditions import WorkspaceId
from codehub.domain.disk import DiskUsage
from tests.api.harness import ApiHarness, Person, open_harness
from tests.api.workspace_requests import changed, error_of, patch

GB = 10**9


@pytest.fixture
async def harness(api_environment: dict[str, str]) -> AsyncIterator[ApiHarness]:
    async with open_harness({**api_environment, "CODEHUB_LOCAL_DISK_BYTES": str(10 * GB)}) as harness:
        yield harness


async def measured(harness: ApiHarness, person: Person, used_bytes: int, *, complete: bool = True) -> str:
    """Return a stopped workspace that uses this much."""
    workspace_id = str((await person.create())["id"])
    usage = DiskUsage(used_bytes, harness.context.now() + timedelta(minutes=1), complete)
    async with harness.context.database.transaction() as session:
        await store_measurement(session, WorkspaceId(workspace_id), usage, announce=True)
    return workspace_id


async def disk_of(person: Person, workspace_id: str) -> dict[str, Any]:
    disk: dict[str, Any] = (await person.client.get(f"{person.workspaces}/{workspace_id}")).json()["disk"]
    return disk


@pytest.mark.parametrize(
    ("used", "level", "part"),
    [
        (7 * GB, "ok", None),
        (8 * GB, "high", "more than 80 %"),
        (9 * GB, "critical", "Delete files"),
        (11 * GB, "over", "ask an administrator"),
    ],
)
async def test_a_warning_comes_before_the_refusal(
    harness: ApiHarness, used: int, level: str, part: str | None
) -> None:
    ada = await harness.person()
    disk = await disk_of(ada, await measured(harness, ada, used))
    assert (disk["used_bytes"], disk["limit_bytes"], disk["level"]) == (used, 10 * GB, level)
    assert disk["message"] is None if part is None else part in disk["message"]


async def test_what_was_not_measured_has_no_level_to_worry_about(harness: ApiHarness) -> None:
    ada = await harness.person()
    disk = (await ada.create())["disk"]
    assert (disk["used_bytes"], disk["level"], disk["message"]) == (None, "ok", None)


async def test_a_start_is_refused_and_an_administrator_makes_room(harness: ApiHarness) -> None:
    ada, admin = await harness.person(), await harness.person(admin=True)
    workspace_id = await measured(harness, ada, 11 * GB)
    response = await patch(ada, workspace_id, {"desired_state": "RUNNING"})
    problem = await error_of(response, 409, "DISK_LIMIT_EXCEEDED")
    assert (problem["used_bytes"], problem["limit_bytes"]) == (11 * GB, 10 * GB)
    assert "Ask an administrator for more space" in problem["message"]
    # Everything else stays possible.
    assert (await changed(ada, workspace_id, desired_state="STANDBY"))["desired_state"] == "STANDBY"
    path, form = f"/api/v1/admin/workspaces/{workspace_id}/disk", {"limit_bytes": 20 * GB}
    assert (await ada.client.patch(path, json=form)).status_code == 403
    raised = await admin.client.patch(path, json=form)
    assert raised.status_code == 200, raised.text
    assert raised.json()["disk"]["limit_bytes"] == 20 * GB
    assert (await changed(ada, workspace_id, desired_state="RUNNING"))["desired_state"] == "RUNNING"


@pytest.mark.parametrize(("limit", "effective"), [(0, None), (None, 10 * GB), (1, 1)])
async def test_a_limit_of_its_own(harness: ApiHarness, limit: int | None, effective: int | None) -> None:
    ada, admin = await harness.person(), await harness.person(admin=True)
    workspace_id = await measured(harness, ada, 5)
    await admin.client.patch(f"/api/v1/admin/workspaces/{workspace_id}/disk", json={"limit_bytes": limit})
    disk = await disk_of(ada, workspace_id)
    assert (disk["limit_bytes"], disk["own_limit_bytes"]) == (effective, limit)
    entries = (await admin.client.get("/api/v1/admin/audit")).json()["items"]
    found = [each for each in entries if each["target_id"] == workspace_id]
    assert [(each["action"], each["detail"]) for each in found] == [("disk_limit", {"limit_bytes": limit})]


@pytest.mark.parametrize("limit", [-1, 2**63, "ten", 1.5])
async def test_a_limit_that_is_none_is_refused(harness: ApiHarness, limit: object) -> None:
    admin = await harness.person(admin=True)
    path = f"/api/v1/admin/workspaces/{(await admin.create())['id']}/disk"
    await error_of(await admin.client.patch(path, json={"limit_bytes": limit}), 400, "INVALID_REQUEST")


async def test_the_metrics_count_those_above_their_limit(harness: ApiHarness) -> None:
    ada = await harness.person()
    for used in (1, 11 * GB, 12 * GB):
        await measured(harness, ada, used)
    text = (await ada.client.get("/metrics")).text
    assert "codehub_workspaces_over_disk_limit 2.0" in text.splitlines()
