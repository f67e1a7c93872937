"""The forms of the proxy's pages, and their stream of progress."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.ports import Progress
from proxy.forms import form_token_of
from testkit.rows import NOW
from testkit.waiting import until
from tests.api.workspace_rows import LONG_AGO, damage_archive
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import FrontDoorHarness, Person
from tests.html_pages import fields as fields_of
from tests.html_pages import read_text
from tests.proxy_visits import ID


def form(person: Person, workspace_id: WorkspaceId, **fields: str) -> dict[str, str]:
    return {"token": form_token_of(person.session, workspace_id), **fields}


async def submit(
    harness: FrontDoorHarness, person: Person, workspace_id: WorkspaceId, name: str, fields: dict[str, str]
) -> tuple[int, str]:
    response = await harness.request(
        f"/w/{workspace_id}/.codehub/{name}",
        {**person.cookie, "Origin": harness.url, "Sec-Fetch-Site": "same-origin"},
        method="POST",
        data=fields,
    )
    return response.status, response.headers.get("Location", "")


@pytest.mark.parametrize("state", ["PENDING", "ARCHIVED", "STANDBY"])
async def test_a_form_starts_a_workspace(harness: FrontDoorHarness, ann: Person, state: str) -> None:
    workspace_id = await harness.workspace(ann, state)
    page = await harness.request(f"/w/{workspace_id}/lab?a=b", ann.browser)
    assert (form(ann, workspace_id)["token"] in page.text) is (state != "STANDBY")
    wanted = f"/w/{workspace_id}/lab?a=b"
    fields = form(ann, workspace_id, next=wanted)
    assert await submit(harness, ann, workspace_id, "start", fields) == (303, wanted)
    assert (await harness.row(workspace_id)).desired_state == "RUNNING"


async def test_a_form_stops_a_workspace(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    status, _ = await submit(harness, ann, workspace_id, "stop", form(ann, workspace_id))
    assert (status, (await harness.row(workspace_id)).desired_state) == (303, "STANDBY")


async def test_a_form_recovers_a_workspace(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann, "ERROR")
    status, _ = await submit(harness, ann, workspace_id, "recover", form(ann, workspace_id, choice="retry"))
    row = await harness.row(workspace_id)
    assert (status, row.recover_choice) == (303, "retry")


async def test_a_failed_deletion_can_be_undone(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann, "HALTED")
    status, _ = await submit(harness, ann, workspace_id, "undelete", form(ann, workspace_id))
    row = await harness.row(workspace_id)
    assert (status, row.desired_state, row.deleted_at) == (303, "ARCHIVED", None)


@pytest.mark.parametrize("understood", [True, False])
async def test_a_failed_deletion_is_purged_only_with_consent(
    harness: FrontDoorHarness, ann: Person, understood: bool
) -> None:
    workspace_id = await harness.workspace(ann, "HALTED")
    fields = form(ann, workspace_id, **({"understood": "yes"} if understood else {}))
    status, _ = await submit(harness, ann, workspace_id, "purge", fields)
    assert (status, (await harness.row(workspace_id)).purge) == (303, understood)


async def test_a_healthy_workspace_is_not_purged(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    await submit(harness, ann, workspace_id, "purge", form(ann, workspace_id, understood="yes"))
    assert (await harness.row(workspace_id)).desired_state == "STANDBY"


@pytest.mark.parametrize("understood", [True, False])
async def test_an_older_archive_is_chosen_only_with_consent(
    harness: FrontDoorHarness, ann: Person, understood: bool
) -> None:
    workspace_id = await harness.workspace(ann, "ERROR")
    _, older = await damage_archive(harness.database, workspace_id, LONG_AGO - timedelta(days=1))
    page = await harness.request(f"/w/{workspace_id}/", ann.browser)
    assert f'value="{older}"' in page.text
    consent = {"understood": "yes"} if understood else {}
    fields = form(ann, workspace_id, choice="restore_archive", archive=older, **consent)
    await submit(harness, ann, workspace_id, "recover", fields)
    key = (await harness.row(workspace_id)).recover_archive_key
    assert (key is not None and older in key) is understood


async def test_an_invalid_archive_is_not_replaced_by_the_current_one(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann, "ERROR")
    await damage_archive(harness.database, workspace_id, LONG_AGO - timedelta(days=1))
    fields = form(ann, workspace_id, choice="restore_archive", archive="nonsense", understood="yes")
    await submit(harness, ann, workspace_id, "recover", fields)
    assert (await harness.row(workspace_id)).recover_choice is None


async def test_a_page_that_follows_a_deletion_learns_that_it_failed(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann, "HALTED", error_reason=None)
    follower = Follower()
    following = asyncio.create_task(follower.run(harness, ann, workspace_id))

    async def has_events() -> bool:
        return bool(follower.events)

    await until(has_events, "the first event arrives")
    assert {"under_way": "TO_DELETED", "needs_person": False}.items() <= follower.events[-1].items()
    await harness.move(workspace_id, "HALTED")
    await following
    assert {"settled": True, "needs_person": True}.items() <= follower.events[-1].items()


@pytest.mark.parametrize(
    "next_",
    ["https://evil.example/", "//evil.example/w/", "/w/x\r\nA: b", "", "/api", f"/w/{ID}/.codehub/stop"],
)
async def test_a_form_never_leads_elsewhere(harness: FrontDoorHarness, ann: Person, next_: str) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    fields = form(ann, workspace_id, next=next_)
    assert await submit(harness, ann, workspace_id, "start", fields) == (303, f"/w/{workspace_id}/")


async def test_a_form_needs_its_token(harness: FrontDoorHarness, ann: Person, bob: Person) -> None:
    workspace_id, other = await harness.workspace(ann, "STANDBY"), await harness.workspace(ann, "STANDBY")
    for token in ("", "x", form_token_of(ann.session, other), form_token_of(bob.session, workspace_id)):
        status, _ = await submit(harness, ann, workspace_id, "start", {"token": token})
        assert status == 403
    response = await harness.request(
        f"/w/{workspace_id}/.codehub/start", ann.bearer, method="POST", data=form(ann, workspace_id)
    )
    assert response.status == 403
    assert (await harness.row(workspace_id)).desired_state == "STANDBY"


async def test_a_page_of_one_workspace_has_no_token_of_another(
    harness: FrontDoorHarness, ann: Person
) -> None:
    """Code in a workspace can read the pages at its address, for example with a service worker."""
    running = [await harness.workspace(ann) for _ in range(2)]
    workspace_id = await harness.workspace(ann, "STANDBY")
    page = await harness.request(f"/w/{workspace_id}/", ann.browser)
    assert page.status == 502
    for other in running:
        assert f"/w/{other}/.codehub/stop" in page.text
        assert form_token_of(ann.session, other) not in page.text
        assert (await submit(harness, ann, other, "stop", form(ann, workspace_id)))[0] == 403
        assert (await harness.row(other)).desired_state == "RUNNING"


async def test_a_stop_from_the_page_of_another_workspace(harness: FrontDoorHarness, ann: Person) -> None:
    running, _ = await harness.workspace(ann), await harness.workspace(ann)
    workspace_id = await harness.workspace(ann, "STANDBY")
    wanted = f"/w/{workspace_id}/lab?a=b"
    limit = read_text((await harness.request(wanted, ann.browser)).text)
    address = next(
        link.attributes["href"] for link in limit.all("a") if f"/w/{running}/" in link.attributes["href"]
    )
    page = await harness.request(address, ann.browser)
    assert page.status == 200
    (stop,) = read_text(page.text).all("form")
    assert await submit(harness, ann, running, "stop", fields_of(stop)) == (303, wanted)
    assert (await harness.row(running)).desired_state == "STANDBY"
    # The second time, there is nothing to confirm.
    again = await harness.request(address, ann.browser)
    assert (again.status, again.headers["Location"]) == (303, wanted)


@pytest.mark.parametrize(
    "differing",
    [
        {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Purpose": "prefetch"},
    ],
)
async def test_only_a_navigation_gets_the_page_that_stops(
    harness: FrontDoorHarness, ann: Person, differing: dict[str, str]
) -> None:
    workspace_id = await harness.workspace(ann)
    response = await harness.request(f"/w/{workspace_id}/.codehub/stop", {**ann.browser, **differing})
    assert (response.status, form_token_of(ann.session, workspace_id) in response.text) == (405, False)


async def test_only_the_owner_gets_the_page_that_stops(
    harness: FrontDoorHarness, ann: Person, bob: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    assert (await harness.request(f"/w/{workspace_id}/.codehub/stop", bob.browser)).status == 403
    response = await harness.request(f"/w/{workspace_id}/.codehub/stop", ann.browser)
    assert response.headers["X-Frame-Options"] == "DENY"
    assert (await harness.row(workspace_id)).desired_state == "RUNNING"


async def test_a_start_without_a_running_slot_leads_back(harness: FrontDoorHarness, ann: Person) -> None:
    for _ in range(2):
        await harness.workspace(ann)
    workspace_id = await harness.workspace(ann, "ARCHIVED")
    wanted = f"/w/{workspace_id}/lab?a=b"
    response = await harness.request(
        f"/w/{workspace_id}/.codehub/start",
        {**ann.cookie, "Origin": harness.url, "Sec-Fetch-Site": "same-origin"},
        method="POST",
        data=form(ann, workspace_id, next=wanted),
    )
    assert response.status == 502
    page = read_text(response.text).one("main")
    assert [link.attributes["href"] for link in page.all("a")][-1] == wanted
    assert "%2F.codehub" not in response.text


async def test_other_methods_paths_and_bodies_are_refused(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    own = f"/w/{workspace_id}/.codehub"
    assert (await harness.request(f"{own}/start", ann.cookie)).status == 405
    assert (await harness.request(f"{own}/nothing", ann.cookie)).status == 404
    json_body = {**ann.cookie, "Content-Type": "application/json"}
    assert (await harness.request(f"{own}/start", json_body, method="POST", data=b"{}")).status == 415
    huge = {**ann.cookie, "Content-Type": "application/x-www-form-urlencoded"}
    assert (await harness.request(f"{own}/start", huge, method="POST", data=b"a" * 20_000)).status == 413


class Follower:
    """A page's EventSource."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    async def run(self, harness: FrontDoorHarness, person: Person, workspace_id: WorkspaceId) -> None:
        path, headers = await harness.locate(f"/w/{workspace_id}/.codehub/progress", person.cookie)
        async with harness.client.get(harness.url + path, headers=headers) as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            async for line in response.content:
                if line.startswith(b"data: "):
                    self.events.append(json.loads(line[6:]))


async def test_progress_is_streamed_until_the_ide_opens(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(
        ann, "STARTING", phase="ARCHIVED", operation="RESTORING", op_started_at=NOW
    )
    follower = Follower()
    board = harness.proxy.front_door.handler.board
    async with running_ide(harness.root, workspace_id):
        following = asyncio.create_task(follower.run(harness, ann, workspace_id))

        async def has_bytes() -> bool:
            await board.post(workspace_id, Progress("restore", 10, 100))
            return any(event["done"] == 10 for event in follower.events)

        await until(has_bytes, "the bytes arrive")
        assert {"total": 100, "unit": "bytes", "open": False}.items() <= follower.events[-1].items()
        await harness.move(workspace_id, "RUNNING")
        # The stream ends on its own.
        await following
    assert {"phase": "RUNNING", "open": True, "settled": True}.items() <= follower.events[-1].items()


async def test_progress_ends_when_the_workspace_is_settled(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann, "STOPPING")
    follower = Follower()
    following = asyncio.create_task(follower.run(harness, ann, workspace_id))

    async def has_events() -> bool:
        return bool(follower.events)

    await until(has_events, "the first event arrives")
    await harness.move(workspace_id, "STANDBY")
    await following
    assert {"phase": "STANDBY", "open": False, "settled": True}.items() <= follower.events[-1].items()
