"""Recovery over the API: the choices are listed, and a choice is carried out."""

from datetime import timedelta
from uuid import uuid4

import pytest

from codehub.db.archive_views import MAX_OTHERS
from codehub.domain.states import ErrorReason
from testkit.fake_world import FakeWorld
from testkit.waiting import until
from tests.api.harness import ApiHarness
from tests.api.workspace_requests import error_of, harness, settled
from tests.api.workspace_rows import LONG_AGO, damage_archive, fail, lose_data

__all__ = ["harness"]


async def test_for_lost_data_the_choices_are_listed(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    path = f"{ada.workspaces}/{workspace_id}/recover"
    await lose_data(harness.context.database, workspace_id)
    problem = await error_of(await ada.client.post(path), 409, "INVALID_STATE")
    assert (problem["phase"], problem["choices"]) == ("ERROR", ["retry", "start_empty"])
    response = await ada.client.post(path, json={"choice": "restore_archive"})
    assert (await error_of(response, 409, "INVALID_STATE"))["choices"] == ["retry", "start_empty"]
    await lose_data(harness.context.database, workspace_id, archive_key="archives/a/b/home.tar.zst")
    problem = await error_of(await ada.client.post(path, json={}), 409, "INVALID_STATE")
    assert problem["choices"] == ["retry", "restore_archive", "start_empty"]
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()["error"]
    assert shown["recover_choices"] == problem["choices"]
    response = await ada.client.post(path, json={"choice": "start_empty"})
    assert (response.status_code, response.json()["recovering"]) == (202, True)


async def test_other_errors_need_no_choice(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    path = f"{ada.workspaces}/{workspace_id}/recover"
    problem = await error_of(await ada.client.post(path), 409, "INVALID_STATE")
    assert problem["message"] == "There is no error to recover from."
    assert "choices" not in problem
    await fail(harness.context.database, workspace_id, ErrorReason.TIMEOUT)
    response = await ada.client.post(path)
    assert (response.status_code, response.json()["recovering"]) == (202, True)


async def test_a_recovered_workspace_continues(harness: ApiHarness, world: FakeWorld) -> None:
    ada = await harness.person()
    created = await ada.create(image_ref="nowhere", desired_state="RUNNING")

    async def broke() -> bool:
        return bool((await ada.client.get(f"{ada.workspaces}/{created['id']}")).json()["phase"] == "ERROR")

    await until(broke, "the image cannot be pulled")
    world.images.add("nowhere")
    assert (await ada.client.post(f"{ada.workspaces}/{created['id']}/recover")).status_code == 202
    assert (await settled(harness, ada, created["id"]))["error"] is None


OLDER, OLDEST = LONG_AGO - timedelta(days=1), LONG_AGO - timedelta(days=2)


async def test_a_damaged_archive_offers_the_older_ones_with_their_consequences(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    _, older, oldest = await damage_archive(harness.context.database, workspace_id, OLDER, OLDEST)
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()["recover"]
    assert [each["choice"] for each in shown["choices"]] == ["retry", "restore_archive", "start_empty"]
    assert [bool(each["consequence"]) for each in shown["choices"]] == [False, True, True]
    assert [each["archive_op_id"] for each in shown["archives"]] == [older, oldest]
    first = shown["archives"][0]
    # It has not been verified since its upload.
    assert (first["created_at"], first["verified_at"]) == ("2025-12-31T00:00:00Z", None)
    assert (first["size_bytes"], first["current"]) == (42, False)


async def test_an_older_archive_can_be_chosen(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    _, older = await damage_archive(harness.context.database, workspace_id, OLDER)
    chosen = {"choice": "restore_archive", "archive": older}
    response = await ada.client.post(f"{ada.workspaces}/{workspace_id}/recover", json=chosen)
    assert (response.status_code, response.json()["recovering"]) == (202, True), response.text
    assert (response.json()["needs_person"], response.json()["recover"]) == (False, None)


@pytest.mark.parametrize(
    ("choice", "which", "sentence"),
    [
        ("restore_archive", None, "name another one"),
        ("restore_archive", 0, "name another one"),
        ("restore_archive", -1, "no such archive"),
    ],
)
async def test_an_archive_that_cannot_be_restored_is_refused(
    harness: ApiHarness, choice: str, which: int | None, sentence: str
) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    ids = [*await damage_archive(harness.context.database, workspace_id, OLDER), str(uuid4())]
    chosen = {"choice": choice} | ({"archive": ids[which]} if which is not None else {})
    response = await ada.client.post(f"{ada.workspaces}/{workspace_id}/recover", json=chosen)
    assert sentence in (await error_of(response, 409, "INVALID_STATE"))["message"]


async def test_only_restore_archive_takes_an_archive(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    chosen = {"choice": "start_empty", "archive": str(uuid4())}
    response = await ada.client.post(f"{ada.workspaces}/{workspace_id}/recover", json=chosen)
    assert (
        "must not contain `archive` unless `choice` is `restore_archive`"
        in (await error_of(response, 400, "INVALID_REQUEST"))["message"]
    )


async def test_an_archive_that_is_not_listed_can_be_chosen(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id = (await ada.create())["id"]
    times = [LONG_AGO - timedelta(days=days) for days in range(1, MAX_OTHERS + 2)]
    *_, last = await damage_archive(harness.context.database, workspace_id, *times)
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()["recover"]["archives"]
    assert last not in {each["archive_op_id"] for each in shown}
    chosen = {"choice": "restore_archive", "archive": last}
    response = await ada.client.post(f"{ada.workspaces}/{workspace_id}/recover", json=chosen)
    assert response.status_code == 202, response.text


async def test_the_archives_of_another_workspace_are_not_offered(harness: ApiHarness) -> None:
    ada = await harness.person()
    workspace_id, other = (await ada.create())["id"], (await ada.create())["id"]
    await damage_archive(harness.context.database, workspace_id)
    [foreign] = await damage_archive(harness.context.database, other)
    path = f"{ada.workspaces}/{workspace_id}"
    shown = (await ada.client.get(path)).json()["recover"]
    assert ([each["choice"] for each in shown["choices"]], shown["archives"]) == (
        ["retry", "start_empty"],
        [],
    )
    chosen = {"choice": "restore_archive", "archive": foreign}
    await error_of(await ada.client.post(f"{path}/recover", json=chosen), 409, "INVALID_STATE")
