"""Changes of workspaces over the API: all or nothing, and requests can wait for the result."""

from codehub.domain.states import Operation, Phase
from testkit.fake_world import FakeWorld
from tests.api.harness import ApiHarness
from tests.api.workspace_requests import changed, error_of, harness, patch, settled
from tests.api.workspace_rows import (
    LONG_AGO,
    begin_operation,
    fail,
    set_columns,
)

__all__ = ["harness"]


async def test_a_patch_changes_only_the_fields_that_it_names(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create(description="text", memo="note", standby_ttl_seconds=90)
    renamed = await changed(ada, created["id"], name=" new name ")
    different = {name for name in created if created[name] != renamed[name]}
    assert different == {"name", "version", "updated_at"}
    assert renamed["name"] == "new name"


async def test_null_clears_optional_fields(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create(
        description="text", memo="note", standby_ttl_seconds=90, archive_ttl_seconds=91
    )
    cleared = await changed(
        ada, created["id"], description=None, memo=None, standby_ttl_seconds=None, archive_ttl_seconds=None
    )
    names = ("description", "memo", "standby_ttl_seconds", "archive_ttl_seconds")
    assert [cleared[name] for name in names] == [None] * 4
    assert cleared["effective_standby_ttl_seconds"] == 600
    await error_of(await patch(ada, created["id"], {"name": None}), 400, "INVALID_REQUEST")


async def test_a_patch_that_changes_nothing_keeps_the_version(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create(memo="note")
    for form in ({}, {"memo": "note"}, {"desired_state": "STANDBY"}):
        response = await patch(ada, created["id"], form)
        assert (response.status_code, response.json()["version"]) == (200, created["version"])


async def test_a_refused_patch_changes_nothing_at_all(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    await begin_operation(harness.context.database, created["id"], Operation.STARTING)
    refused = await patch(ada, created["id"], {"name": "new", "desired_state": "RUNNING"})
    assert refused.status_code == 409
    read = (await ada.client.get(f"{ada.workspaces}/{created['id']}")).json()
    assert read["name"] == "home"


async def test_while_an_operation_runs_only_metadata_can_be_changed(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    await begin_operation(harness.context.database, created["id"], Operation.ARCHIVING)
    response = await patch(ada, created["id"], {"desired_state": "RUNNING"})
    problem = await error_of(response, 409, "OPERATION_IN_PROGRESS")
    assert problem["operation"] == "ARCHIVING"
    assert problem["since"].startswith("2026-01-01T00:00:00")
    assert int(response.headers["retry-after"]) == problem["retry_after_seconds"] >= 1
    for request in (
        ada.client.delete(f"{ada.workspaces}/{created['id']}"),
        ada.client.post(f"{ada.workspaces}/{created['id']}/recover", json={}),
    ):
        await error_of(await request, 409, "OPERATION_IN_PROGRESS")
    assert (await changed(ada, created["id"], name="new"))["name"] == "new"
    # Requesting the same state is not a change, so it is allowed.
    assert (await changed(ada, created["id"], desired_state="STANDBY"))["operation"] == "ARCHIVING"


async def test_a_workspace_in_error_cannot_change_state_until_it_is_recovered(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    await fail(harness.context.database, created["id"])
    response = await patch(ada, created["id"], {"desired_state": "RUNNING"})
    assert (await error_of(response, 409, "INVALID_STATE"))["phase"] == "ERROR"


async def test_if_match_allows_a_change_of_the_named_version_only(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    etag = f'"{created["version"]}"'
    response = await patch(ada, created["id"], {"name": "first"}, If_Match=etag)
    assert response.status_code == 200
    assert response.headers["etag"] != etag
    await error_of(
        await patch(ada, created["id"], {"name": "second"}, If_Match=etag), 412, "PRECONDITION_FAILED"
    )
    for nonsense in ("nonsense", '"9999999999999999999999"', f"W/{response.headers['etag']}", '""'):
        await error_of(
            await patch(ada, created["id"], {"name": "third"}, If_Match=nonsense), 412, "PRECONDITION_FAILED"
        )
    assert (await patch(ada, created["id"], {"name": "fourth"}, If_Match="*")).status_code == 200


async def test_an_unchanged_workspace_is_not_sent_again(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    path, etag = f"{ada.workspaces}/{created['id']}", f'"{created["version"]}"'
    # A proxy that compresses makes ETags weak; a cache may send several.
    for known in (etag, f'"0", {etag}', f"W/{etag}", "*"):
        response = await ada.client.get(path, headers={"If-None-Match": known})
        assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", etag), known
    await set_columns(harness.context.database, created["id"], last_access_at=LONG_AGO)
    assert (await ada.client.get(path, headers={"If-None-Match": etag})).status_code == 304
    await set_columns(harness.context.database, created["id"], phase=Phase.STANDBY)
    assert (await ada.client.get(path, headers={"If-None-Match": etag})).status_code == 200


async def test_a_request_that_waits_returns_when_the_state_is_reached(
    harness: ApiHarness, world: FakeWorld
) -> None:
    ada = await harness.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    for desired in ("RUNNING", "ARCHIVED", "STANDBY"):
        await settled(harness, ada, created["id"])
        response = await ada.client.patch(
            path, json={"desired_state": desired}, params={"wait": 60}, timeout=70
        )
        assert response.status_code == 200, response.text
        assert (response.json()["phase"], response.json()["operation"]) == (desired, "NONE")


async def test_a_request_that_waits_returns_when_the_workspace_fails(
    harness: ApiHarness, world: FakeWorld
) -> None:
    ada = await harness.person()
    created = await ada.create(image_ref="nowhere")
    await settled(harness, ada, created["id"])
    response = await ada.client.patch(
        f"{ada.workspaces}/{created['id']}",
        json={"desired_state": "RUNNING"},
        params={"wait": 60},
        timeout=70,
    )
    error = response.json()["error"]
    assert (response.json()["phase"], error["reason"]) == ("ERROR", "ImagePullFailed")
    assert error["recover_choices"] == ["retry"]
    assert error["explanation"]


async def test_a_request_that_waits_too_long_returns_the_current_state(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    response = await ada.client.patch(
        f"{ada.workspaces}/{created['id']}", json={"desired_state": "RUNNING"}, params={"wait": 1}
    )
    assert response.status_code == 200
    assert (response.json()["phase"], response.json()["desired_state"]) == ("PENDING", "RUNNING")
