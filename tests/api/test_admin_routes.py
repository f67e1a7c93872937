"""Administration over the API: accounts, all workspaces, errors, the state of the system."""

from uuid import uuid4

import pytest
from temporalio.client import Client

from codehub.adapters.temporal.schedules import SchedulePeriods, ensure_schedules
from codehub.domain.states import Operation, Phase
from tests.api.harness import PASSWORD, ApiHarness
from tests.api.workspace_rows import (
    begin_operation,
    fail,
    halt_deletion,
    lose_data,
    mark_deleted,
    set_columns,
)

ADMIN = "/api/v1/admin"


@pytest.fixture
def harness(harness: ApiHarness) -> ApiHarness:
    return harness.with_cheap_passwords()


async def test_an_account_is_added_read_changed_and_can_sign_in(harness: ApiHarness) -> None:
    root = (await harness.person("root", admin=True)).client
    form = {"username": "grace", "password": PASSWORD}
    added = await root.post(f"{ADMIN}/users", json=form)
    assert added.status_code == 201
    grace = added.json()
    assert added.headers["location"] == f"{ADMIN}/users/{grace['id']}"
    assert (grace["username"], grace["role"], grace["disabled_at"]) == ("grace", "user", None)
    assert PASSWORD not in added.text
    assert (await root.get(f"{ADMIN}/users/{grace['id']}")).json() == grace
    assert (await root.post(f"{ADMIN}/users", json={**form, "username": "GRACE"})).status_code == 409
    client = harness.stranger()
    await harness.sign_in(client, "grace")
    assert (await client.get(f"{ADMIN}/users")).status_code == 403
    await root.patch(f"{ADMIN}/users/{grace['id']}", json={"role": "admin"})
    assert (await client.get(f"{ADMIN}/users")).status_code == 200
    assert (await root.get(f"{ADMIN}/users/{uuid4()}")).status_code == 404


async def test_a_disabled_account_is_signed_out_at_once_and_stays_so_when_enabled(
    harness: ApiHarness,
) -> None:
    root = (await harness.person(admin=True)).client
    ada = await harness.person()
    program, _ = await harness.token_client(ada)
    path = f"{ADMIN}/users/{ada.user_id}"
    assert (await root.patch(path, json={"disabled": True})).json()["disabled_at"] is not None
    for client in (ada.client, program):
        assert (await client.get("/api/v1/session")).status_code == 401
    assert (await root.patch(path, json={"disabled": False})).json()["disabled_at"] is None
    for client in (ada.client, program):
        assert (await client.get("/api/v1/session")).status_code == 401
    await harness.sign_in(harness.stranger(), ada.username)


async def test_the_last_administrator_cannot_be_demoted_or_disabled(harness: ApiHarness) -> None:
    root = await harness.person(admin=True)
    for form in ({"role": "user"}, {"disabled": True}):
        response = await root.client.patch(f"{ADMIN}/users/{root.user_id}", json=form)
        assert (response.status_code, response.json()["error"]["code"]) == (409, "CONFLICT")
    assert (await root.client.get(f"{ADMIN}/users")).status_code == 200


async def test_a_refused_change_leaves_the_account_as_it_was(harness: ApiHarness) -> None:
    root, ada = await harness.person(admin=True), await harness.person()
    path = f"{ADMIN}/users/{ada.user_id}"
    response = await root.client.patch(path, json={"role": "admin", "password": "short"})
    assert response.status_code == 400
    assert (await root.client.get(path)).json()["role"] == "user"


async def test_accounts_are_listed_by_name_in_pages(harness: ApiHarness) -> None:
    root = (await harness.person("root", admin=True)).client
    for number in range(6):
        await root.post(f"{ADMIN}/users", json={"username": f"user{number}", "password": PASSWORD})
    names: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await root.get(f"{ADMIN}/users", params={"limit": 3, **cursor})).json()
        names += [item["username"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert names == ["root", *(f"user{number}" for number in range(6))]


async def test_workspaces_of_all_users_are_listed_and_filtered(harness: ApiHarness) -> None:
    root, ada, bob = await harness.person(admin=True), await harness.person(), await harness.person()
    first, second = (await ada.create(name="first"))["id"], (await bob.create(name="second"))["id"]
    await set_columns(harness.context.database, second, phase=Phase.STANDBY)

    async def ids(**query: str) -> list[str]:
        response = await root.client.get(f"{ADMIN}/workspaces", params=query)
        return [item["id"] for item in response.json()["items"]]

    assert await ids() == [second, first]
    assert await ids(owner=str(ada.user_id)) == [first]
    assert await ids(phase="STANDBY") == [second]
    assert await ids(q="irs") == [first]
    page = (await root.client.get(f"{ADMIN}/workspaces", params={"limit": 1})).json()
    assert await ids(limit="1", cursor=page["next_cursor"]) == [first]
    await mark_deleted(harness.context.database, first, Phase.DELETED)
    assert (await ids(), await ids(deleted="true")) == ([second], [first])


async def test_deleted_workspaces_are_not_counted_by_phase(harness: ApiHarness) -> None:
    root, ada = await harness.person(admin=True), await harness.person()
    ids = [(await ada.create())["id"] for _ in range(4)]
    await set_columns(harness.context.database, ids[0], phase=Phase.RUNNING)
    await fail(harness.context.database, ids[1])
    await mark_deleted(harness.context.database, ids[2], Phase.DELETED)
    phases = (await root.client.get(f"{ADMIN}/phases")).json()["phases"]
    assert phases == {
        "PENDING": 1, "ARCHIVED": 0, "STANDBY": 0, "RUNNING": 1, "ERROR": 1, "DELETING": 0
    }  # fmt: skip


async def test_errors_are_listed_oldest_first(harness: ApiHarness) -> None:
    root, ada = await harness.person(admin=True), await harness.person()
    ids = [(await ada.create())["id"] for _ in range(3)]
    for workspace_id in ids[1:]:
        await fail(harness.context.database, workspace_id)
    items = (await root.client.get(f"{ADMIN}/errors")).json()["items"]
    assert [item["id"] for item in items] == ids[1:]
    assert items[0]["error"]["reason"] == "Timeout"
    assert len((await root.client.get(f"{ADMIN}/errors", params={"limit": 1})).json()["items"]) == 1


async def test_failed_deletions_are_listed_and_counted_as_errors(harness: ApiHarness) -> None:
    root, ada = await harness.person(admin=True), await harness.person()
    halted, broken, purged, recovering = [(await ada.create())["id"] for _ in range(4)]
    for workspace_id in (halted, purged):
        await halt_deletion(harness.context.database, workspace_id)
    await set_columns(harness.context.database, purged, purge=True)
    for workspace_id in (broken, recovering):
        await fail(harness.context.database, workspace_id)
    await ada.client.post(f"{ada.workspaces}/{recovering}/recover")
    items = (await root.client.get(f"{ADMIN}/errors")).json()["items"]
    assert [item["id"] for item in items] == [halted, broken]
    assert all(item["needs_person"] for item in items)
    assert (await root.client.get(f"{ADMIN}/status")).json()["needs_person"] == 2


async def test_a_failed_deletion_is_recovered_with_the_others(harness: ApiHarness) -> None:
    root, ada = await harness.person(admin=True), await harness.person()
    halted = (await ada.create())["id"]
    await halt_deletion(harness.context.database, halted)
    response = await root.client.post(f"{ADMIN}/errors/recover", json={})
    assert response.json() == {"recovered": [halted], "refused": []}


async def test_a_bulk_recovery_continues_after_one_that_is_refused(harness: ApiHarness) -> None:
    root, ada = await harness.person(admin=True), await harness.person()
    broken, lost, well, busy = [(await ada.create())["id"] for _ in range(4)]
    await fail(harness.context.database, broken)
    await lose_data(harness.context.database, lost)
    await fail(harness.context.database, busy)
    await set_columns(harness.context.database, busy, phase=Phase.PENDING, error_reason=None)
    await begin_operation(harness.context.database, busy, Operation.STARTING)
    missing = [str(uuid4()), "nonsense"]
    form = {"choice": "restore_archive", "ids": [broken, lost, well, busy, *missing]}
    response = (await root.client.post(f"{ADMIN}/errors/recover", json=form)).json()
    assert response["recovered"] == []
    messages = {each["id"]: each["message"] for each in response["refused"]}
    assert set(messages) == {broken, lost, well, busy, *missing}
    assert "start_empty" in messages[lost]
    assert "STARTING" in messages[busy]
    response = (await root.client.post(f"{ADMIN}/errors/recover", json={**form, "choice": "retry"})).json()
    assert sorted(response["recovered"]) == sorted([broken, lost])
    assert {each["id"] for each in response["refused"]} == {well, busy, *missing}
    read = (await ada.client.get(f"{ada.workspaces}/{broken}")).json()
    assert read["recovering"] is True


async def test_all_errors_can_be_recovered_at_once(harness: ApiHarness) -> None:
    root, ada = await harness.person(admin=True), await harness.person()
    ids = [(await ada.create())["id"] for _ in range(3)]
    for workspace_id in ids:
        await fail(harness.context.database, workspace_id)
    response = (await root.client.post(f"{ADMIN}/errors/recover", json={})).json()
    assert response == {"recovered": ids, "refused": []}


async def test_the_status_lists_dependencies_sweeps_phases_and_limits(
    harness: ApiHarness, temporal_client: Client
) -> None:
    await ensure_schedules(temporal_client, harness.settings.temporal.task_queue, SchedulePeriods())
    root = await harness.person(admin=True)
    await root.create(desired_state="RUNNING")
    status = (await root.client.get(f"{ADMIN}/status")).json()
    assert {each["name"]: each["healthy"] for each in status["dependencies"]} == {
        "postgresql": True,
        "redis": True,
        "temporal": True,
        "s3": True,
    }
    assert all(each["version"] for each in status["dependencies"])
    assert len(status["sweeps"]) == 5
    assert status["phases"]["PENDING"] == 1
    assert status["limits"] == {"running": 1, "max_running_global": 100, "max_running_per_user": 2}
    assert status["live_clients"] == 0
