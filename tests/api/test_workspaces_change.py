"""Changes of workspaces over the API: all of one or nothing, and who waits is answered."""

from codehub.domain.states import Operation, Phase
from testkit.fake_world import FakeWorld
from tests.api.harness import ApiHarness
from tests.api.workspace_requests import changed, error_of, harness, patch, settled, world
from tests.api.workspace_rows import (
    LONG_AGO,
    begin_operation,
    fail,
    set_columns,
)

__all__ = ["harness", "world"]


async def test_a_patch_changes_what_it_names_and_nothing_else(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create(description="text", memo="note", standby_ttl_seconds=90)
    renamed = await changed(ada, created["id"], name=" new name ")
    different = {name for name in created if created[name] != renamed[name]}
    assert different == {"name", "version", "updated_at"}
    assert renamed["name"] == "new name"


async def test_null_clears_what_may_be_empty(harness: ApiHarness) -> None:
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


async def test_a_patch_that_changes_nothing_leaves_the_version(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create(memo="note")
    for form in ({}, {"memo": "note"}, {"desired_state": "STANDBY"}):
        answer = await patch(ada, created["id"], form)
        assert (answer.status_code, answer.json()["version"]) == (200, created["version"])


async def test_a_refused_patch_changes_nothing_at_all(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    await begin_operation(harness.context.database, created["id"], Operation.STARTING)
    refused = await patch(ada, created["id"], {"name": "new", "desired_state": "RUNNING"})
    assert refused.status_code == 409
    read = (await ada.client.get(f"{ada.workspaces}/{created['id']}")).json()
    assert read["name"] == "home"


async def test_while_an_operation_runs_only_words_can_be_changed(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    await begin_operation(harness.context.database, created["id"], Operation.ARCHIVING)
    answer = await patch(ada, created["id"], {"desired_state": "RUNNING"})
    problem = await error_of(answer, 409, "OPERATION_IN_PROGRESS")
    assert problem["operation"] == "ARCHIVING"
    assert problem["since"].startswith("2026-01-01T00:00:00")
    assert int(answer.headers["retry-after"]) == problem["retry_after_seconds"] >= 1
    for request in (
        ada.client.delete(f"{ada.workspaces}/{created['id']}"),
        ada.client.post(f"{ada.workspaces}/{created['id']}/recover", json={}),
    ):
        await error_of(await request, 409, "OPERATION_IN_PROGRESS")
    assert (await changed(ada, created["id"], name="new"))["name"] == "new"
    # What is desired already is no change, so nothing has to wait.
    assert (await changed(ada, created["id"], desired_state="STANDBY"))["operation"] == "ARCHIVING"


async def test_a_broken_workspace_goes_nowhere_until_it_is_recovered(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    await fail(harness.context.database, created["id"])
    answer = await patch(ada, created["id"], {"desired_state": "RUNNING"})
    assert (await error_of(answer, 409, "INVALID_STATE"))["phase"] == "ERROR"


async def test_a_change_is_made_only_to_the_version_it_is_meant_for(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    etag = f'"{created["version"]}"'
    answer = await patch(ada, created["id"], {"name": "first"}, If_Match=etag)
    assert answer.status_code == 200
    assert answer.headers["etag"] != etag
    await error_of(
        await patch(ada, created["id"], {"name": "second"}, If_Match=etag), 412, "PRECONDITION_FAILED"
    )
    for nonsense in ("nonsense", '"9999999999999999999999"', f"W/{answer.headers['etag']}", '""'):
        await error_of(
            await patch(ada, created["id"], {"name": "third"}, If_Match=nonsense), 412, "PRECONDITION_FAILED"
        )
    assert (await patch(ada, created["id"], {"name": "fourth"}, If_Match="*")).status_code == 200


async def test_an_unchanged_workspace_is_not_sent_again(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    path, etag = f"{ada.workspaces}/{created['id']}", f'"{created["version"]}"'
    # A proxy that compresses makes an ETag weak; a cache may know several.
    for known in (etag, f'"0", {etag}', f"W/{etag}", "*"):
        answer = await ada.client.get(path, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag), known
    await set_columns(harness.context.database, created["id"], last_access_at=LONG_AGO)
    assert (await ada.client.get(path, headers={"If-None-Match": etag})).status_code == 304
    await set_columns(harness.context.database, created["id"], phase=Phase.STANDBY)
    assert (await ada.client.get(path, headers={"If-None-Match": etag})).status_code == 200


async def test_who_waits_is_answered_when_it_has_arrived(harness: ApiHarness, world: FakeWorld) -> None:
    ada = await harness.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    for desired in ("RUNNING", "ARCHIVED", "STANDBY"):
        await settled(harness, ada, created["id"])
        answer = await ada.client.patch(
            path, json={"desired_state": desired}, params={"wait": 60}, timeout=70
        )
        assert answer.status_code == 200, answer.text
        assert (answer.json()["phase"], answer.json()["operation"]) == (desired, "NONE")


async def test_who_waits_is_answered_when_it_breaks(harness: ApiHarness, world: FakeWorld) -> None:
    ada = await harness.person()
    created = await ada.create(image_ref="nowhere")
    await settled(harness, ada, created["id"])
    answer = await ada.client.patch(
        f"{ada.workspaces}/{created['id']}",
        json={"desired_state": "RUNNING"},
        params={"wait": 60},
        timeout=70,
    )
    error = answer.json()["error"]
    assert (answer.json()["phase"], error["reason"]) == ("ERROR", "ImagePullFailed")
    assert error["recover_choices"] == ["retry"]
    assert error["explanation"]


async def test_who_waits_too_long_sees_how_far_it_got(harness: ApiHarness) -> None:
    ada = await harness.person()
    created = await ada.create()
    answer = await ada.client.patch(
        f"{ada.workspaces}/{created['id']}", json={"desired_state": "RUNNING"}, params={"wait": 1}
    )
    assert answer.status_code == 200
    assert (answer.json()["phase"], answer.json()["desired_state"]) == ("PENDING", "RUNNING")
