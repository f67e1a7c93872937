"""A home on a lost node over the API: it says so with times, and offers to wait or the last archive."""

from datetime import timedelta
from uuid import uuid4

from codehub.domain.states import Operation, Phase
from tests.api.harness import ApiHarness
from tests.api.workspace_requests import error_of, harness
from tests.api.workspace_rows import LONG_AGO, begin_operation, lose_node, mark_deleted

__all__ = ["harness"]
ARCHIVED_AT = LONG_AGO - timedelta(days=1)
WHERE = "The home is on a disk of the node n1."


async def test_it_says_since_when_and_of_when_the_last_archive_is(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create(desired_state="PENDING"))["id"]
    await lose_node(harness.context.database, workspace_id, ARCHIVED_AT)
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()
    message = f"{WHERE} The last archive is from 2025-12-31 00:00 UTC."
    assert shown["out_of_reach"] == {
        "since": "2026-01-01T00:00:00Z",
        "message": message,
        "last_archive_at": "2025-12-31T00:00:00Z",
    }
    assert shown["waiting"]["message"] == f"{message} It continues by itself when the node is back."
    assert (shown["phase"], shown["needs_person"], shown["error"]) == ("STANDBY", False, None)


async def test_it_says_that_there_is_no_archive(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create(desired_state="PENDING"))["id"]
    await lose_node(harness.context.database, workspace_id)
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()
    assert shown["out_of_reach"]["message"] == f"{WHERE} There is no archive of it."
    assert shown["out_of_reach"]["last_archive_at"] is None
    assert [each["choice"] for each in shown["recover"]["choices"]] == ["wait"]
    response = await ada.client.post(
        f"{ada.workspaces}/{workspace_id}/recover", json={"choice": "restore_archive"}
    )
    assert (await error_of(response, 409, "INVALID_STATE"))["choices"] == ["wait"]


async def test_the_choices_are_told_with_their_consequences(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create(desired_state="PENDING"))["id"]
    archive = await lose_node(harness.context.database, workspace_id, ARCHIVED_AT)
    recover = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()["recover"]
    wait, restore = recover["choices"]
    assert (wait["choice"], wait["consequence"]) == ("wait", None)
    assert restore["choice"] == "restore_archive"
    assert "The disk on the lost node is kept" in restore["consequence"]
    assert [(each["archive_op_id"], each["current"]) for each in recover["archives"]] == [
        (str(archive), True)
    ]
    assert recover["undelete"] is False


async def test_waiting_is_the_default(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create(desired_state="PENDING"))["id"]
    await lose_node(harness.context.database, workspace_id, ARCHIVED_AT)
    response = await ada.client.post(f"{ada.workspaces}/{workspace_id}/recover")
    assert response.status_code == 202
    events = (await ada.client.get(f"{ada.workspaces}/{workspace_id}/events")).json()["items"]
    asked = [each["detail"]["choice"] for each in events if each["kind"] == "recovery_requested"]
    assert asked == ["wait"]


async def test_only_the_last_archive_can_be_named(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create(desired_state="PENDING"))["id"]
    archive = await lose_node(harness.context.database, workspace_id, ARCHIVED_AT)
    path = f"{ada.workspaces}/{workspace_id}/recover"
    other = {"choice": "restore_archive", "archive": str(uuid4())}
    problem = await error_of(await ada.client.post(path, json=other), 409, "INVALID_STATE")
    assert problem["message"].startswith("Only the last archive")
    response = await ada.client.post(path, json={"choice": "restore_archive", "archive": str(archive)})
    assert (response.status_code, response.json()["recovering"]) == (202, True)


async def test_no_choice_is_offered_during_an_operation_or_after_a_deletion(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create(desired_state="PENDING"))["id"]
    database = harness.context.database
    await lose_node(database, workspace_id, ARCHIVED_AT)
    await begin_operation(database, workspace_id, Operation.ARCHIVING)
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()
    assert (shown["recover"], shown["out_of_reach"] is None) == (None, False)
    await lose_node(database, workspace_id, ARCHIVED_AT)
    await mark_deleted(database, workspace_id, Phase.DELETING)
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()
    assert [each["choice"] for each in shown["recover"]["choices"]] == ["wait", "restore_archive"]
