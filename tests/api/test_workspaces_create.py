"""New workspaces over the API: each request creates one, also if it is repeated."""

import asyncio

import pytest

from tests.api.harness import ApiHarness
from tests.api.workspace_requests import changed, error_of, harness, listed, patch

__all__ = ["harness"]

KEY = {"Idempotency-Key": "the-same"}


async def test_a_new_workspace_exists_and_will_run(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create(desired_state="RUNNING", description=" The new parser ")
    assert (created["phase"], created["desired_state"]) == ("PENDING", "RUNNING")
    assert created["description"] == "The new parser"
    assert created["url"] == f"http://{created['id']}.localhost:8080/"
    response = await ada.client.get(f"{ada.workspaces}/{created['id']}")
    assert response.json()["id"] == created["id"]
    assert response.headers["etag"] == f'"{created["version"]}"'


async def test_a_name_is_enough_and_the_rest_has_defaults(harness: ApiHarness) -> None:
    ada = await harness.person("ada")
    response = await ada.client.post(ada.workspaces, json={"name": "home"})
    assert response.status_code == 201
    created = response.json()
    assert response.headers["location"] == f"{ada.workspaces}/{created['id']}"
    assert created["owner"] == {"id": str(ada.user_id), "username": "ada"}
    assert created["desired_state"] == "RUNNING"
    assert created["image_ref"] == harness.settings.workspaces.default_image_ref
    assert (created["instance_backend"], created["storage_backend"]) == ("local", "local-dir")
    assert (created["effective_standby_ttl_seconds"], created["effective_archive_ttl_seconds"]) == (600, 1800)
    empty = ("description", "memo", "standby_ttl_seconds", "archive_ttl_seconds", "error", "archive")
    assert {created[name] for name in (*empty, "deleted_at", "undelete_until", "last_access_at")} == {None}
    assert created["conditions"]["storage.volume_ready"]["status"] == "Unknown"


async def test_every_field_of_a_new_workspace_is_stored(harness: ApiHarness) -> None:
    ada = await harness.person()
    form = {
        "name": "compiler",
        "description": "The new parser",
        "memo": "  two\nlines ",
        "image_ref": "registry.example/ide:1.2@sha256:abc",
        "standby_ttl_seconds": 60,
        "archive_ttl_seconds": 7_776_000,
        "desired_state": "STANDBY",
    }
    created = await ada.create(**form)
    read = (await ada.client.get(f"{ada.workspaces}/{created['id']}")).json()
    assert {name: read[name] for name in form} == form
    assert (read["effective_standby_ttl_seconds"], read["effective_archive_ttl_seconds"]) == (60, 7_776_000)


async def test_pending_means_archived(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create(desired_state="PENDING")
    assert created["desired_state"] == "ARCHIVED"
    assert (await changed(ada, created["id"], desired_state="STANDBY"))["desired_state"] == "STANDBY"
    assert (await changed(ada, created["id"], desired_state="PENDING"))["desired_state"] == "ARCHIVED"


@pytest.mark.parametrize("state", ["DELETED", "ERROR", "running", None])
async def test_other_states_cannot_be_requested(harness: ApiHarness, state: str | None) -> None:
    ada = await harness.person()
    created = await ada.create()
    problem = await error_of(
        await patch(ada, created["id"], {"desired_state": state}), 400, "INVALID_REQUEST"
    )
    assert problem["fields"][0]["field"] == "body.desired_state"


async def test_a_repeated_request_with_the_same_key_creates_nothing_more(harness: ApiHarness) -> None:
    ada = await harness.person()
    form = {"name": "home", "desired_state": "STANDBY"}
    responses = [await ada.client.post(ada.workspaces, json=form, headers=KEY) for _ in range(3)]
    assert [response.status_code for response in responses] == [201] * 3
    assert len({response.json()["id"] for response in responses}) == 1
    assert len(await listed(ada)) == 1


async def test_concurrent_requests_with_the_same_key_create_one_workspace(harness: ApiHarness) -> None:
    ada = await harness.person()
    form = {"name": "home"}
    responses = await asyncio.gather(
        *(ada.client.post(ada.workspaces, json=form, headers=KEY) for _ in range(20))
    )
    assert {response.status_code for response in responses} == {201}
    assert len({response.json()["id"] for response in responses}) == 1
    assert len(await listed(ada)) == 1


async def test_the_same_key_with_another_request_is_a_conflict(harness: ApiHarness) -> None:
    ada = await harness.person()
    await ada.client.post(ada.workspaces, json={"name": "home"}, headers=KEY)
    await error_of(
        await ada.client.post(ada.workspaces, json={"name": "other"}, headers=KEY), 409, "CONFLICT"
    )
    assert len(await listed(ada)) == 1


async def test_users_do_not_share_keys(harness: ApiHarness) -> None:
    ids = set()
    for person in (await harness.person(), await harness.person()):
        ids.add(
            (await person.client.post(person.workspaces, json={"name": "home"}, headers=KEY)).json()["id"]
        )
    assert len(ids) == 2


async def test_the_key_of_a_refused_request_can_be_used_again(harness: ApiHarness) -> None:
    ada = await harness.person()
    running = [await ada.create(desired_state="RUNNING") for _ in range(2)]
    refused = await ada.client.post(ada.workspaces, json={"name": "third"}, headers=KEY)
    assert refused.status_code == 429
    await changed(ada, running[0]["id"], desired_state="STANDBY")
    repeated = await ada.client.post(ada.workspaces, json={"name": "third"}, headers=KEY)
    assert repeated.status_code == 201
