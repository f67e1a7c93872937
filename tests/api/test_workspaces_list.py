"""Lists of workspaces over the API: all of the user's own, each once."""

import pytest

from codehub.domain.states import Phase
from tests.api.harness import ApiHarness
from tests.api.workspace_requests import error_of, harness, listed
from tests.api.workspace_rows import (
    LONG_AGO,
    mark_deleted,
    set_columns,
)

__all__ = ["harness"]


async def test_pages_contain_every_workspace_once_newest_first(harness: ApiHarness) -> None:
    ada = await harness.person()
    ids = [(await ada.create(name=f"number {number}"))["id"] for number in range(25)]
    first = (await ada.client.get(ada.workspaces, params={"limit": 10})).json()
    assert len(first["items"]) == 10
    assert await listed(ada, limit=10) == ids[::-1]
    # The last page is full, and yet there is no cursor for an empty one.
    last = await ada.client.get(ada.workspaces, params={"limit": 25})
    assert last.json()["next_cursor"] is None


async def test_workspaces_created_at_the_same_time_are_all_listed(harness: ApiHarness) -> None:
    ada = await harness.person()
    ids = [(await ada.create())["id"] for _ in range(7)]
    for workspace_id in ids:
        await set_columns(harness.context.database, workspace_id, created_at=LONG_AGO)
    found = await listed(ada, limit=2)
    assert (sorted(found), len(found)) == (sorted(ids), 7)


async def test_pages_stay_complete_while_workspaces_are_created_and_deleted(harness: ApiHarness) -> None:
    ada = await harness.person()
    ids = [(await ada.create())["id"] for _ in range(25)]
    pages = []
    cursor: dict[str, str] = {}
    for _ in range(3):
        page = (await ada.client.get(ada.workspaces, params={"limit": 10, **cursor})).json()
        pages.append([each["id"] for each in page["items"]])
        cursor = {"cursor": page["next_cursor"]}
        await ada.create(name="meanwhile")
        # One that was listed already, and the one in the cursor.
        for seen in (pages[-1][0], pages[-1][-1]):
            await mark_deleted(harness.context.database, seen, Phase.DELETED)
    assert [each for page in pages for each in page] == ids[::-1]


@pytest.mark.parametrize("cursor", ["nonsense", "", "é", "MTI", "bnVsbA", "W10", "WyIxIiwgIjIiXQ"])
async def test_an_unknown_cursor_is_refused(harness: ApiHarness, cursor: str) -> None:
    ada = await harness.person()
    response = await ada.client.get(ada.workspaces, params={"cursor": cursor})
    await error_of(response, 400, "INVALID_REQUEST")


async def test_lists_can_be_filtered_by_phase_and_text(harness: ApiHarness) -> None:
    ada = await harness.person()
    running = (await ada.create(name="Compiler"))["id"]
    standby = (await ada.create(name="b", description="100% of the compiler_s tests"))["id"]
    other = (await ada.create(name="other"))["id"]
    await set_columns(harness.context.database, running, phase=Phase.RUNNING)
    await set_columns(harness.context.database, standby, phase=Phase.STANDBY)
    assert await listed(ada, phase="RUNNING") == [running]
    assert await listed(ada, phase=["RUNNING", "STANDBY"]) == [standby, running]
    assert await listed(ada, q="COMPILER") == [standby, running]
    assert await listed(ada, q="compiler", phase="STANDBY") == [standby]
    # Wildcards of the database are plain text here.
    assert await listed(ada, q="0% of") == [standby]
    assert await listed(ada, q="r_s") == [standby]
    assert await listed(ada, q="%") == [standby]
    assert await listed(ada, q="\0") == []
    assert await listed(ada, q="") == [other, standby, running]
    assert (await ada.client.get(ada.workspaces, params={"phase": "ASLEEP"})).status_code == 400


async def test_the_list_of_deleted_workspaces_shows_only_those(harness: ApiHarness) -> None:
    ada = await harness.person()
    there, leaving, gone = [(await ada.create())["id"] for _ in range(3)]
    for workspace_id, phase in ((leaving, Phase.DELETING), (gone, Phase.DELETED)):
        await mark_deleted(harness.context.database, workspace_id, phase)
    assert await listed(ada) == [leaving, there]
    assert await listed(ada, deleted="true") == [gone]


async def test_lists_do_not_show_workspaces_of_others(harness: ApiHarness) -> None:
    ada, bob = await harness.person(), await harness.person()
    await bob.create()
    assert await listed(ada) == []
