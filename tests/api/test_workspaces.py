"""Workspaces over the API: what is asked for is written, and what is refused says why."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, text
from temporalio.client import Client

from codehub.db.models import Archive, Workspace
from codehub.domain.states import ErrorReason, Operation, Phase
from tests.api.behind import (
    LONG_AGO,
    begin_operation,
    fail,
    lose_data,
    mark_deleted,
    set_columns,
    with_cheap_passwords,
    working,
)
from tests.api.bench import ApiBench, Person, open_bench
from tests.fake_world import FakeWorld
from tests.waiting import until

KEY = {"Idempotency-Key": "the-same"}
# As if a worker had carried out the deletion before the API looked at the row again.
SWEEP_THAT_IS_QUICKER = (
    """CREATE FUNCTION be_quicker() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN NEW.phase := 'DELETED'; RETURN NEW; END $$""",
    """CREATE TRIGGER be_quicker BEFORE UPDATE ON workspaces FOR EACH ROW
       WHEN (NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION be_quicker()""",
)


@pytest.fixture
def bench(bench: ApiBench) -> ApiBench:
    return with_cheap_passwords(bench)


async def patch(person: Person, workspace_id: str, form: dict[str, Any], **headers: str) -> Any:  # noqa: ANN401
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return await person.client.patch(f"{person.workspaces}/{workspace_id}", json=form, headers=names)


async def changed(person: Person, workspace_id: str, **form: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await patch(person, workspace_id, form)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def error_of(answer: Any, status: int, code: str) -> dict[str, Any]:  # noqa: ANN401
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    problem: dict[str, Any] = answer.json()["error"]
    assert problem["request_id"] == answer.headers["x-request-id"]
    return problem


async def listed(person: Person, **query: Any) -> list[str]:  # noqa: ANN401
    """The ids of all pages, in order."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await person.client.get(person.workspaces, params={**query, **cursor})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += [each["id"] for each in page["items"]]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def test_a_new_workspace_is_there_and_shall_run(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create(desired_state="RUNNING", description=" The new parser ")
    assert (created["phase"], created["desired_state"]) == ("PENDING", "RUNNING")
    assert created["description"] == "The new parser"
    assert created["url"].endswith(f"/w/{created['id']}/")
    answer = await ada.client.get(f"{ada.workspaces}/{created['id']}")
    assert answer.json()["id"] == created["id"]
    assert answer.headers["etag"] == f'"{created["version"]}"'


async def test_a_name_is_enough_and_the_rest_has_defaults(bench: ApiBench) -> None:
    ada = await bench.person("ada")
    answer = await ada.client.post(ada.workspaces, json={"name": "home"})
    assert answer.status_code == 201
    created = answer.json()
    assert answer.headers["location"] == f"{ada.workspaces}/{created['id']}"
    assert created["owner"] == {"id": str(ada.user_id), "username": "ada"}
    assert created["desired_state"] == "RUNNING"
    assert created["image_ref"] == bench.settings.workspaces.default_image_ref
    assert (created["instance_backend"], created["storage_backend"]) == ("local", "local-dir")
    assert (created["effective_standby_ttl_seconds"], created["effective_archive_ttl_seconds"]) == (600, 1800)
    empty = ("description", "memo", "standby_ttl_seconds", "archive_ttl_seconds", "error", "archive")
    assert {created[name] for name in (*empty, "deleted_at", "undelete_until", "last_access_at")} == {None}
    assert created["conditions"]["storage.volume_ready"]["status"] == "Unknown"


async def test_every_field_of_a_new_workspace_is_kept(bench: ApiBench) -> None:
    ada = await bench.person()
    form = {
        "name": "compiler",
        "description": "The new parser",
        "memo": "  two\nlines ",
        "image_ref": "registry.example/ide:1.2@sha256:abc",
        "standby_ttl_seconds": 60,
        "archive_ttl_seconds": 315_360_000,
        "desired_state": "STANDBY",
    }
    created = await ada.create(**form)
    read = (await ada.client.get(f"{ada.workspaces}/{created['id']}")).json()
    assert {name: read[name] for name in form} == form
    assert (read["effective_standby_ttl_seconds"], read["effective_archive_ttl_seconds"]) == (60, 315_360_000)


async def test_pending_is_the_older_spelling_of_archived(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create(desired_state="PENDING")
    assert created["desired_state"] == "ARCHIVED"
    assert (await changed(ada, created["id"], desired_state="STANDBY"))["desired_state"] == "STANDBY"
    assert (await changed(ada, created["id"], desired_state="PENDING"))["desired_state"] == "ARCHIVED"


@pytest.mark.parametrize("state", ["DELETED", "ERROR", "running", None])
async def test_other_states_cannot_be_asked_for(bench: ApiBench, state: str | None) -> None:
    ada = await bench.person()
    created = await ada.create()
    problem = await error_of(
        await patch(ada, created["id"], {"desired_state": state}), 400, "INVALID_REQUEST"
    )
    assert problem["fields"][0]["field"] == "body.desired_state"


async def test_a_repeated_request_with_the_same_key_creates_nothing_more(bench: ApiBench) -> None:
    ada = await bench.person()
    form = {"name": "home", "desired_state": "STANDBY"}
    answers = [await ada.client.post(ada.workspaces, json=form, headers=KEY) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201] * 3
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(await listed(ada)) == 1


async def test_requests_with_the_same_key_at_the_same_time_create_one(bench: ApiBench) -> None:
    ada = await bench.person()
    form = {"name": "home"}
    answers = await asyncio.gather(
        *(ada.client.post(ada.workspaces, json=form, headers=KEY) for _ in range(20))
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(await listed(ada)) == 1


async def test_a_key_that_comes_with_another_request_is_a_conflict(bench: ApiBench) -> None:
    ada = await bench.person()
    await ada.client.post(ada.workspaces, json={"name": "home"}, headers=KEY)
    await error_of(
        await ada.client.post(ada.workspaces, json={"name": "other"}, headers=KEY), 409, "CONFLICT"
    )
    assert len(await listed(ada)) == 1


async def test_people_do_not_share_keys(bench: ApiBench) -> None:
    ids = set()
    for person in (await bench.person(), await bench.person()):
        ids.add(
            (await person.client.post(person.workspaces, json={"name": "home"}, headers=KEY)).json()["id"]
        )
    assert len(ids) == 2


async def test_a_key_of_a_refused_request_may_be_used_again(bench: ApiBench) -> None:
    ada = await bench.person()
    running = [await ada.create(desired_state="RUNNING") for _ in range(2)]
    refused = await ada.client.post(ada.workspaces, json={"name": "third"}, headers=KEY)
    assert refused.status_code == 429
    await changed(ada, running[0]["id"], desired_state="STANDBY")
    repeated = await ada.client.post(ada.workspaces, json={"name": "third"}, headers=KEY)
    assert repeated.status_code == 201


async def test_pages_hold_every_workspace_once_newest_first(bench: ApiBench) -> None:
    ada = await bench.person()
    ids = [(await ada.create(name=f"number {number}"))["id"] for number in range(25)]
    first = (await ada.client.get(ada.workspaces, params={"limit": 10})).json()
    assert len(first["items"]) == 10
    assert await listed(ada, limit=10) == ids[::-1]
    # The last page is full, and still nobody is sent to an empty one.
    last = await ada.client.get(ada.workspaces, params={"limit": 25})
    assert last.json()["next_cursor"] is None


async def test_workspaces_of_the_same_moment_are_all_listed(bench: ApiBench) -> None:
    ada = await bench.person()
    ids = [(await ada.create())["id"] for _ in range(7)]
    for workspace_id in ids:
        await set_columns(bench.context.database, workspace_id, created_at=LONG_AGO)
    found = await listed(ada, limit=2)
    assert (sorted(found), len(found)) == (sorted(ids), 7)


async def test_pages_stay_whole_while_workspaces_come_and_go(bench: ApiBench) -> None:
    ada = await bench.person()
    ids = [(await ada.create())["id"] for _ in range(25)]
    pages = []
    cursor: dict[str, str] = {}
    for _ in range(3):
        page = (await ada.client.get(ada.workspaces, params={"limit": 10, **cursor})).json()
        pages.append([each["id"] for each in page["items"]])
        cursor = {"cursor": page["next_cursor"]}
        await ada.create(name="meanwhile")
        # One that was listed already, and the very one that the cursor names.
        for seen in (pages[-1][0], pages[-1][-1]):
            await mark_deleted(bench.context.database, seen, Phase.DELETED)
    assert [each for page in pages for each in page] == ids[::-1]


@pytest.mark.parametrize("cursor", ["nonsense", "", "é", "MTI", "bnVsbA", "W10", "WyIxIiwgIjIiXQ"])
async def test_a_cursor_that_is_none_of_ours_is_told(bench: ApiBench, cursor: str) -> None:
    ada = await bench.person()
    answer = await ada.client.get(ada.workspaces, params={"cursor": cursor})
    await error_of(answer, 400, "INVALID_REQUEST")


async def test_lists_can_be_narrowed_by_phase_and_text(bench: ApiBench) -> None:
    ada = await bench.person()
    running = (await ada.create(name="Compiler"))["id"]
    standby = (await ada.create(name="b", description="100% of the compiler_s tests"))["id"]
    other = (await ada.create(name="other"))["id"]
    await set_columns(bench.context.database, running, phase=Phase.RUNNING)
    await set_columns(bench.context.database, standby, phase=Phase.STANDBY)
    assert await listed(ada, phase="RUNNING") == [running]
    assert await listed(ada, phase=["RUNNING", "STANDBY"]) == [standby, running]
    assert await listed(ada, q="COMPILER") == [standby, running]
    assert await listed(ada, q="compiler", phase="STANDBY") == [standby]
    # What means something to the database means nothing here.
    assert await listed(ada, q="0% of") == [standby]
    assert await listed(ada, q="r_s") == [standby]
    assert await listed(ada, q="%") == [standby]
    assert await listed(ada, q="\0") == []
    assert await listed(ada, q="") == [other, standby, running]
    assert (await ada.client.get(ada.workspaces, params={"phase": "ASLEEP"})).status_code == 400


async def test_lists_of_deleted_ones_show_those_and_no_others(bench: ApiBench) -> None:
    ada = await bench.person()
    there, leaving, gone = [(await ada.create())["id"] for _ in range(3)]
    for workspace_id, phase in ((leaving, Phase.DELETING), (gone, Phase.DELETED)):
        await mark_deleted(bench.context.database, workspace_id, phase)
    assert await listed(ada) == [leaving, there]
    assert await listed(ada, deleted="true") == [gone]


async def test_lists_show_nobody_elses(bench: ApiBench) -> None:
    ada, bob = await bench.person(), await bench.person()
    await bob.create()
    assert await listed(ada) == []


async def test_a_patch_changes_what_it_names_and_nothing_else(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create(description="text", memo="note", standby_ttl_seconds=90)
    renamed = await changed(ada, created["id"], name=" new name ")
    different = {name for name in created if created[name] != renamed[name]}
    assert different == {"name", "version", "updated_at"}
    assert renamed["name"] == "new name"


async def test_null_clears_what_may_be_empty(bench: ApiBench) -> None:
    ada = await bench.person()
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


async def test_a_patch_that_changes_nothing_leaves_the_version(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create(memo="note")
    for form in ({}, {"memo": "note"}, {"desired_state": "STANDBY"}):
        answer = await patch(ada, created["id"], form)
        assert (answer.status_code, answer.json()["version"]) == (200, created["version"])


async def test_a_refused_patch_changes_nothing_at_all(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    await begin_operation(bench.context.database, created["id"], Operation.STARTING)
    refused = await patch(ada, created["id"], {"name": "new", "desired_state": "RUNNING"})
    assert refused.status_code == 409
    read = (await ada.client.get(f"{ada.workspaces}/{created['id']}")).json()
    assert read["name"] == "home"


async def test_while_an_operation_runs_only_words_can_be_changed(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    await begin_operation(bench.context.database, created["id"], Operation.ARCHIVING)
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


async def test_a_broken_workspace_goes_nowhere_until_it_is_recovered(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    await fail(bench.context.database, created["id"])
    answer = await patch(ada, created["id"], {"desired_state": "RUNNING"})
    assert (await error_of(answer, 409, "INVALID_STATE"))["phase"] == "ERROR"


async def test_a_change_is_made_only_to_the_version_it_is_meant_for(bench: ApiBench) -> None:
    ada = await bench.person()
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


async def test_an_unchanged_workspace_is_not_sent_again(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    path, etag = f"{ada.workspaces}/{created['id']}", f'"{created["version"]}"'
    # A proxy that compresses makes an ETag weak; a cache may know several.
    for known in (etag, f'"0", {etag}', f"W/{etag}", "*"):
        answer = await ada.client.get(path, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag), known
    await set_columns(bench.context.database, created["id"], last_access_at=LONG_AGO)
    assert (await ada.client.get(path, headers={"If-None-Match": etag})).status_code == 304
    await set_columns(bench.context.database, created["id"], phase=Phase.STANDBY)
    assert (await ada.client.get(path, headers={"If-None-Match": etag})).status_code == 200


@pytest.fixture
async def world(bench: ApiBench, temporal_client: Client) -> AsyncIterator[FakeWorld]:
    """Whatever the API wakes is carried out here."""
    async with working(bench) as acted_on:
        yield acted_on


async def test_who_waits_is_answered_when_it_has_arrived(bench: ApiBench, world: FakeWorld) -> None:
    ada = await bench.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    for desired in ("RUNNING", "ARCHIVED", "STANDBY"):
        await settled(bench, ada, created["id"])
        answer = await ada.client.patch(
            path, json={"desired_state": desired}, params={"wait": 60}, timeout=70
        )
        assert answer.status_code == 200, answer.text
        assert (answer.json()["phase"], answer.json()["operation"]) == (desired, "NONE")


async def test_who_waits_is_answered_when_it_breaks(bench: ApiBench, world: FakeWorld) -> None:
    ada = await bench.person()
    created = await ada.create(image_ref="nowhere")
    await settled(bench, ada, created["id"])
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


async def test_who_waits_too_long_sees_how_far_it_got(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    answer = await ada.client.patch(
        f"{ada.workspaces}/{created['id']}", json={"desired_state": "RUNNING"}, params={"wait": 1}
    )
    assert answer.status_code == 200
    assert (answer.json()["phase"], answer.json()["desired_state"]) == ("PENDING", "RUNNING")


async def settled(bench: ApiBench, person: Person, workspace_id: str) -> dict[str, Any]:
    """The workspace once it is where it should be."""
    read: dict[str, Any] = {}

    async def arrived() -> bool:
        read.update((await person.client.get(f"{person.workspaces}/{workspace_id}")).json())
        return bool(read["phase"] == read["desired_state"] and read["operation"] == "NONE")

    await until(arrived, f"{workspace_id} is where it should be")
    return read


async def gone(person: Person, workspace_id: str) -> None:
    async def answers_404() -> bool:
        return (await person.client.get(f"{person.workspaces}/{workspace_id}")).status_code == 404

    await until(answers_404, f"{workspace_id} is gone")


async def test_a_deleted_workspace_is_gone_and_comes_back(bench: ApiBench, world: FakeWorld) -> None:
    ada = await bench.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    await settled(bench, ada, created["id"])
    answer = await ada.client.delete(path)
    assert answer.status_code == 202
    deletion = answer.json()
    assert deletion["purge"] is False
    assert "undelete" in deletion["message"]
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
    answer = await ada.client.post(f"{path}/undelete")
    assert answer.status_code == 202, answer.text
    assert (answer.json()["desired_state"], answer.json()["deleted_at"]) == ("ARCHIVED", None)
    assert (await settled_after_undelete(bench, ada, created["id"]))["phase"] == "ARCHIVED"


async def settled_after_undelete(bench: ApiBench, person: Person, workspace_id: str) -> dict[str, Any]:
    async def is_back() -> bool:
        return (await person.client.get(f"{person.workspaces}/{workspace_id}")).status_code == 200

    await until(is_back, f"{workspace_id} is back")
    return await settled(bench, person, workspace_id)


async def test_a_deletion_that_is_under_way_can_be_taken_back(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    await ada.client.delete(path)
    await error_of(await ada.client.patch(path, json={"desired_state": "RUNNING"}), 409, "INVALID_STATE")
    assert (await ada.client.patch(path, json={"name": "new"})).status_code == 200
    answer = await ada.client.post(f"{path}/undelete")
    assert (answer.status_code, answer.json()["desired_state"]) == (202, "ARCHIVED")
    await error_of(await ada.client.post(f"{path}/undelete"), 409, "INVALID_STATE")


async def test_whoever_purges_is_told_that_it_is_for_good(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    path = f"{ada.workspaces}/{created['id']}"
    deletion = (await ada.client.delete(path, params={"purge": "true"})).json()
    assert deletion["purge"] is True
    assert "cannot be taken back" in deletion["message"]
    assert deletion["workspace"]["undelete_until"] is None
    problem = await error_of(await ada.client.post(f"{path}/undelete"), 409, "INVALID_STATE")
    assert "last archive" in problem["message"]


async def test_a_deletion_that_is_over_at_once_is_answered_like_any_other(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    async with bench.context.database.transaction() as session:
        for statement in SWEEP_THAT_IS_QUICKER:
            await session.execute(text(statement))
    answer = await ada.client.delete(f"{ada.workspaces}/{created['id']}", params={"purge": "true"})
    assert (answer.status_code, answer.json()["workspace"]["phase"]) == (202, "DELETED")


async def test_deleting_a_broken_workspace_is_a_purge_and_says_so(bench: ApiBench) -> None:
    ada = await bench.person()
    created = await ada.create()
    await fail(bench.context.database, created["id"])
    deletion = (await ada.client.delete(f"{ada.workspaces}/{created['id']}")).json()
    assert deletion["purge"] is True
    assert "cannot be taken back" in deletion["message"]


async def test_a_workspace_whose_archive_was_collected_does_not_come_back(bench: ApiBench) -> None:
    ada = await bench.person()
    workspace_id, key = (await ada.create())["id"], "archives/gone/home.tar.zst"
    async with bench.context.database.transaction() as session:
        session.add(Archive(key=key, workspace_id=workspace_id, archive_op_id=uuid4(), deleted_at=LONG_AGO))
    await mark_deleted(bench.context.database, workspace_id, Phase.DELETED)
    await set_columns(bench.context.database, workspace_id, archive_key=key)
    answer = await ada.client.post(f"{ada.workspaces}/{workspace_id}/undelete")
    problem = await error_of(answer, 409, "INVALID_STATE")
    assert "removed" in problem["message"]


async def test_for_lost_files_the_choices_are_told(bench: ApiBench) -> None:
    ada = await bench.person()
    workspace_id = (await ada.create())["id"]
    path = f"{ada.workspaces}/{workspace_id}/recover"
    await lose_data(bench.context.database, workspace_id)
    problem = await error_of(await ada.client.post(path), 409, "INVALID_STATE")
    assert (problem["phase"], problem["choices"]) == ("ERROR", ["retry", "start_empty"])
    answer = await ada.client.post(path, json={"choice": "restore_archive"})
    assert (await error_of(answer, 409, "INVALID_STATE"))["choices"] == ["retry", "start_empty"]
    await lose_data(bench.context.database, workspace_id, archive_key="archives/a/b/home.tar.zst")
    problem = await error_of(await ada.client.post(path, json={}), 409, "INVALID_STATE")
    assert problem["choices"] == ["retry", "restore_archive", "start_empty"]
    shown = (await ada.client.get(f"{ada.workspaces}/{workspace_id}")).json()["error"]
    assert shown["recover_choices"] == problem["choices"]
    answer = await ada.client.post(path, json={"choice": "start_empty"})
    assert (answer.status_code, answer.json()["recovering"]) == (202, True)


async def test_other_errors_are_left_without_a_choice(bench: ApiBench) -> None:
    ada = await bench.person()
    workspace_id = (await ada.create())["id"]
    path = f"{ada.workspaces}/{workspace_id}/recover"
    problem = await error_of(await ada.client.post(path), 409, "INVALID_STATE")
    assert problem["message"] == "There is no error to recover from."
    assert "choices" not in problem
    await fail(bench.context.database, workspace_id, ErrorReason.TIMEOUT)
    answer = await ada.client.post(path)
    assert (answer.status_code, answer.json()["recovering"]) == (202, True)


async def test_a_recovered_workspace_goes_on(bench: ApiBench, world: FakeWorld) -> None:
    ada = await bench.person()
    created = await ada.create(image_ref="nowhere", desired_state="RUNNING")

    async def broke() -> bool:
        return bool((await ada.client.get(f"{ada.workspaces}/{created['id']}")).json()["phase"] == "ERROR")

    await until(broke, "the image cannot be pulled")
    world.images.add("nowhere")
    assert (await ada.client.post(f"{ada.workspaces}/{created['id']}/recover")).status_code == 202
    assert (await settled(bench, ada, created["id"]))["error"] is None


async def test_over_ones_own_limit_the_running_ones_are_listed(bench: ApiBench) -> None:
    ada, bob = await bench.person(), await bench.person()
    running = [await ada.create(name=name, desired_state="RUNNING") for name in ("a", "b")]
    await bob.create(desired_state="RUNNING")
    answer = await ada.client.post(ada.workspaces, json={"name": "third"})
    problem = await error_of(answer, 429, "LIMIT_EXCEEDED")
    assert problem["scope"] == "user"
    assert problem["running"] == [
        {"id": each["id"], "name": each["name"], "phase": "PENDING", "desired_state": "RUNNING"}
        for each in running
    ]
    third = await ada.create()
    await error_of(await patch(ada, third["id"], {"desired_state": "RUNNING"}), 429, "LIMIT_EXCEEDED")
    await changed(ada, running[0]["id"], desired_state="STANDBY")
    assert (await changed(ada, third["id"], desired_state="RUNNING"))["desired_state"] == "RUNNING"


async def test_what_others_run_is_not_listed_over_the_global_limit(api_environment: dict[str, str]) -> None:
    async with open_bench({**api_environment, "CODEHUB_LIMITS_MAX_RUNNING_GLOBAL": "2"}) as bench:
        ada, bob = await bench.person(), await bench.person()
        own = await ada.create(desired_state="RUNNING")
        await bob.create(desired_state="RUNNING")
        answer = await ada.client.post(ada.workspaces, json={"name": "third"})
        problem = await error_of(answer, 429, "LIMIT_EXCEEDED")
        assert problem["scope"] == "global"
        assert [each["id"] for each in problem["running"]] == [own["id"]]
        async with bench.context.database.transaction() as session:
            assert await session.scalar(select(func.count()).select_from(Workspace)) == 2


async def test_an_administrator_acts_for_the_owner_and_the_place_is_the_owners(bench: ApiBench) -> None:
    ada, root = await bench.person(), await bench.person(admin=True)
    created = await ada.create()
    for _ in range(2):
        await root.create(desired_state="RUNNING")
    # The administrator's own places are all taken, the owner's are not.
    assert (await changed(root, created["id"], desired_state="RUNNING"))["owner"]["id"] == str(ada.user_id)
