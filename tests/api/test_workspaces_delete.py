"""Deleting and undeleting workspaces over the API."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from codehub.db.models import Archive
from codehub.domain.states import Operation, Phase
from testkit.fake_world import FakeWorld
from testkit.waiting import until
from tests.api.harness import ApiHarness, Person
from tests.api.workspace_requests import error_of, harness, listed, settled
from tests.api.workspace_rows import (
    LONG_AGO,
    begin_operation,
    fail,
    halt_deletion,
    mark_deleted,
    set_columns,
)

__all__ = ["harness"]

# As if a worker had completed the deletion before the API read the row again.
SWEEP_THAT_IS_QUICKER = (
    """CREATE FUNCTION be_quicker() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN NEW.phase := 'DELETED'; RETURN NEW; END $$""",
    """CREATE TRIGGER be_quicker BEFORE UPDATE ON workspaces FOR EACH ROW
       WHEN (NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION be_quicker()""",
)


async def gone(person: Person, workspace_id: str) -> None:
    async def answers_404() -> bool:
        return (await person.client.get(f"{person.workspaces}/{workspace_id}")).status_code == 404

    await until(answers_404, f"{workspace_id} is gone")


async def test_a_deleted_workspace_is_gone_and_comes_back(harness: ApiHarness, world: FakeWorld) -> None:
    ada = await harness.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    await settled(harness, ada, created["id"])
    response = await ada.client.delete(path)
    assert response.status_code == 202
    deletion = response.json()
    assert deletion["purge"] is False
    assert "Undelete restores it" in deletion["message"]
    assert deletion["workspace"]["desired_state"] == "DELETED"
    assert deletion["workspace"]["undelete_until"] > deletion["workspace"]["deleted_at"]
    await gone(ada, created["id"])
    for request in (
        ada.client.get(path),
        ada.client.patch(path, json={"name": "new"}),
        ada.client.delete(path),
        ada.client.post(f"{path}/recover", json={}),
        ada.client.get(f"{path}/operations"),
    ):
        await error_of(await request, 404, "WORKSPACE_NOT_FOUND")
    assert await listed(ada, deleted="true") == [created["id"]]
    response = await ada.client.post(f"{path}/undelete")
    assert response.status_code == 202, response.text
    assert (response.json()["desired_state"], response.json()["deleted_at"]) == ("ARCHIVED", None)
    assert (await settled_after_undelete(harness, ada, created["id"]))["phase"] == "ARCHIVED"


async def settled_after_undelete(harness: ApiHarness, person: Person, workspace_id: str) -> dict[str, Any]:
    async def is_back() -> bool:
        return (await person.client.get(f"{person.workspaces}/{workspace_id}")).status_code == 200

    await until(is_back, f"{workspace_id} is back")
    return await settled(harness, person, workspace_id)


async def test_a_running_deletion_can_be_undone(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    await ada.client.delete(path)
    await error_of(await ada.client.patch(path, json={"desired_state": "RUNNING"}), 409, "INVALID_STATE")
    assert (await ada.client.patch(path, json={"name": "new"})).status_code == 200
    response = await ada.client.post(f"{path}/undelete")
    assert (response.status_code, response.json()["desired_state"]) == (202, "ARCHIVED")
    await error_of(await ada.client.post(f"{path}/undelete"), 409, "INVALID_STATE")


async def test_a_purge_says_that_it_cannot_be_undone(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    deletion = (await ada.client.delete(path, params={"purge": "true"})).json()
    assert deletion["purge"] is True
    assert "cannot be undone" in deletion["message"]
    assert deletion["workspace"]["undelete_until"] is None
    problem = await error_of(await ada.client.post(f"{path}/undelete"), 409, "INVALID_STATE")
    assert "last archive" in problem["message"]


async def test_a_deletion_that_completes_at_once_gets_the_usual_response(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    async with harness.context.database.transaction() as session:
        for statement in SWEEP_THAT_IS_QUICKER:
            await session.execute(text(statement))
    response = await ada.client.delete(f"{ada.workspaces}/{created['id']}", params={"purge": "true"})
    assert (response.status_code, response.json()["workspace"]["phase"]) == (202, "DELETED")


async def test_deleting_a_workspace_in_error_is_a_purge_and_says_so(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    await fail(harness.context.database, created["id"])
    deletion = (await ada.client.delete(f"{ada.workspaces}/{created['id']}")).json()
    assert deletion["purge"] is True
    assert "cannot be undone" in deletion["message"]


async def events_of(person: Person, workspace_id: str) -> list[dict[str, Any]]:
    items = (await person.client.get(f"{person.workspaces}/{workspace_id}/events")).json()["items"]
    return [each for each in items if each["kind"] == "state_requested"]


async def test_a_failed_deletion_needs_a_person_and_says_what_to_do(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    await halt_deletion(harness.context.database, workspace_id)
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()
    assert (shown["phase"], shown["settled"], shown["needs_person"]) == ("DELETING", True, True)
    assert shown["error"]["reason"] == "RetryExceeded"
    assert [each["choice"] for each in shown["recover"]["choices"]] == ["retry"]
    assert shown["recover"]["undelete"] is True


async def test_a_failed_deletion_can_become_a_purge(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    await halt_deletion(harness.context.database, workspace_id)
    path = f"{ada.workspaces}/{workspace_id}"
    response = await ada.client.delete(path, params={"purge": "true"})
    assert (response.status_code, response.json()["purge"]) == (202, True), response.text
    purged = response.json()["workspace"]
    assert datetime.fromisoformat(purged["deleted_at"]) == LONG_AGO
    assert (purged["settled"], purged["needs_person"], purged["undelete_until"]) == (False, False, None)
    [event, *_] = await events_of(ada, workspace_id)
    assert (event["actor"], event["detail"]) == (
        ada.username,
        {"from": "DELETED", "to": "DELETED", "purge": True},
    )


async def test_a_failed_deletion_that_is_purged_completes(harness: ApiHarness, world: FakeWorld) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    await settled(harness, ada, workspace_id)
    await halt_deletion(harness.context.database, workspace_id)
    await ada.client.delete(f"{ada.workspaces}/{workspace_id}", params={"purge": "true"})
    await gone(ada, workspace_id)
    assert workspace_id not in world.volumes


@pytest.mark.parametrize("operation", [None, Operation.ARCHIVING])
async def test_deleting_again_changes_nothing(harness: ApiHarness, operation: Operation | None) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    await mark_deleted(harness.context.database, workspace_id, Phase.DELETING)
    if operation:
        await begin_operation(harness.context.database, workspace_id, operation)
    path = f"{ada.workspaces}/{workspace_id}"
    before = (await ada.client.get(path)).json()
    response = await ada.client.delete(path)
    assert (response.status_code, response.json()["purge"]) == (202, False)
    assert response.json()["workspace"]["version"] == before["version"]
    assert await events_of(ada, workspace_id) == []


async def test_deleting_again_after_a_failed_deletion_says_that_it_waits_for_a_person(
    harness: ApiHarness,
) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    await halt_deletion(harness.context.database, workspace_id)
    response = await ada.client.delete(f"{ada.workspaces}/{workspace_id}")
    assert (response.status_code, response.json()["purge"]) == (202, False)
    assert "is waiting for you" in response.json()["message"]


async def test_a_purge_stays_a_purge(harness: ApiHarness) -> None:
    ada = await harness.person()
    path = f"{ada.workspaces}/{(await ada.create())['id']}"
    await ada.client.delete(path, params={"purge": "true"})
    assert (await ada.client.delete(path)).json()["purge"] is True


async def test_a_deletion_is_not_turned_into_a_purge_while_an_operation_runs(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    await mark_deleted(harness.context.database, workspace_id, Phase.DELETING)
    await begin_operation(harness.context.database, workspace_id, Operation.ARCHIVING)
    response = await ada.client.delete(f"{ada.workspaces}/{workspace_id}", params={"purge": "true"})
    await error_of(response, 409, "OPERATION_IN_PROGRESS")


async def test_a_workspace_whose_archive_was_collected_cannot_be_undeleted(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id, key = (await ada.create())["id"], "archives/gone/home.tar.zst"
    async with harness.context.database.transaction() as session:
        session.add(Archive(key=key, workspace_id=workspace_id, archive_op_id=uuid4(), deleted_at=LONG_AGO))
    await mark_deleted(harness.context.database, workspace_id, Phase.DELETED)
    await set_columns(harness.context.database, workspace_id, archive_key=key)
    response = await ada.client.post(f"{ada.workspaces}/{workspace_id}/undelete")
    problem = await error_of(response, 409, "INVALID_STATE")
    assert "removed" in problem["message"]
