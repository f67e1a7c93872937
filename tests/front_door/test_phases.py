"""What is answered in each phase, and what wakes a workspace."""

import asyncio

import pytest

from codehub.domain.conditions import WorkspaceId
from testkit.rows import NOW
from testkit.waiting import until
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import FrontDoorHarness, Person
from tests.front_door.held_database import questions

WAKE = {"X-CodeHub-Wake": "true"}
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
FETCH = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": "same-origin"}


async def until_asked_again(asked: list[str]) -> None:
    """A second request for the row: the first was refused."""

    async def again() -> bool:
        return sum("FOR NO KEY UPDATE" in statement for statement in asked) > 1

    await until(again, "it was refused and asks again")


async def desired(harness: FrontDoorHarness, workspace_id: WorkspaceId) -> str:
    return (await harness.row(workspace_id)).desired_state


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        ("STANDBY", 202, "tarting"),
        ("STARTING", 202, "tarting"),
        ("STOPPING", 202, "topping"),
        ("ARCHIVED", 502, "estore"),
        ("PENDING", 502, "Start"),
        ("ERROR", 502, 'value="retry"'),
        ("HALTED", 502, "It could not be deleted"),
    ],
)
async def test_pages(harness: FrontDoorHarness, ann: Person, state: str, status: int, words: str) -> None:
    workspace_id = await harness.workspace(ann, state)
    answer = await harness.ask(f"/w/{workspace_id}/lab", ann.browser)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert words in answer.text
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"


async def test_opening_a_stopped_workspace_wakes_it(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    await harness.ask(f"/w/{workspace_id}/", ann.browser)
    assert await desired(harness, workspace_id) == "RUNNING"


@pytest.mark.parametrize("state", ["ARCHIVED", "PENDING", "ERROR"])
@pytest.mark.parametrize("wake", [{}, WAKE])
async def test_nothing_else_is_started_without_a_decision(
    harness: FrontDoorHarness, ann: Person, state: str, wake: dict[str, str]
) -> None:
    workspace_id = await harness.workspace(ann, state)
    before = await desired(harness, workspace_id)
    for headers in (ann.browser, {**ann.cookie, **wake}):
        assert (await harness.ask(f"/w/{workspace_id}/", headers)).status in {502, 503}
    assert await desired(harness, workspace_id) == before


@pytest.mark.parametrize("more", [{}, FETCH, {"Accept": "application/json"}, WEBSOCKET])
async def test_background_requests_never_wake(
    harness: FrontDoorHarness, ann: Person, more: dict[str, str]
) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    headers = {**ann.cookie, **more, "Origin": harness.url}
    for method in ("GET",) if more is WEBSOCKET else ("GET", "POST", "PUT"):
        answer = await harness.ask(f"/w/{workspace_id}/api/kernels", headers, method=method)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        assert '"code": "WORKSPACE_STOPPED"' in answer.text
    assert await desired(harness, workspace_id) == "STANDBY"


async def test_background_requests_are_told_to_wait_for_a_transition(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann, "STARTING")
    answer = await harness.ask(f"/w/{workspace_id}/", ann.cookie)
    assert (answer.status, '"WORKSPACE_BUSY"' in answer.text) == (503, True)


async def test_a_program_that_asks_for_it_is_held_until_it_runs(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    async with running_ide(harness.root, workspace_id):
        held = asyncio.create_task(harness.ask(f"/w/{workspace_id}/x", {**ann.bearer, **WAKE}))

        async def woken() -> bool:
            return await desired(harness, workspace_id) == "RUNNING"

        await until(woken, "the request has woken it")
        await harness.move(workspace_id, "RUNNING")
        answer = await held
    assert (answer.status, answer.text) == (200, f"GET /w/{workspace_id}/x ")


async def test_running_limit_shows_what_runs_and_a_way_to_stop_it(
    harness: FrontDoorHarness, ann: Person
) -> None:
    running = [await harness.workspace(ann, name=f"busy-{number}") for number in range(2)]
    workspace_id = await harness.workspace(ann, "STANDBY")
    page = await harness.ask(f"/w/{workspace_id}/", ann.browser)
    assert page.status == 502
    for number, other in enumerate(running):
        assert f"busy-{number}" in page.text
        assert f"/w/{other}/.codehub/stop" in page.text
    program = await harness.ask(f"/w/{workspace_id}/", {**ann.bearer, **WAKE})
    assert (program.status, '"LIMIT_EXCEEDED"' in program.text) == (502, True)
    assert await desired(harness, workspace_id) == "STANDBY"


async def test_a_place_that_is_being_given_back_is_waited_for(harness: FrontDoorHarness, ann: Person) -> None:
    await harness.workspace(ann)
    leaving = await harness.workspace(ann, "STOPPING")
    workspace_id = await harness.workspace(ann, "STANDBY")
    with questions(harness.proxy.front_door.handler.lifecycle.database) as asked:
        opening = asyncio.create_task(harness.ask(f"/w/{workspace_id}/", ann.browser))
        await until_asked_again(asked)
        await harness.move(leaving, "STANDBY")
        assert (await opening).status == 202
    assert await desired(harness, workspace_id) == "RUNNING"


async def test_running_without_an_ide_that_answers(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    page = await harness.ask(f"/w/{workspace_id}/", ann.browser)
    assert (page.status, page.headers["Content-Type"]) == (502, "text/html; charset=utf-8")
    program = await harness.ask(f"/w/{workspace_id}/", ann.cookie)
    assert (program.status, '"UPSTREAM_UNAVAILABLE"' in program.text) == (502, True)


async def test_an_ide_that_moved_is_found_again(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        assert (await harness.ask(f"/w/{workspace_id}/a", ann.cookie)).status == 200
    async with running_ide(harness.root, workspace_id) as second:
        assert (await harness.ask(f"/w/{workspace_id}/b", ann.cookie)).status == 200
        assert second.asked("/b")
    assert (await harness.ask(f"/w/{workspace_id}/c", ann.cookie)).status == 502


async def test_an_operation_that_just_began_is_waited_out(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    # Seen at rest a moment ago; the row knows better, and nobody has told.
    assert (await harness.ask(f"/w/{workspace_id}/", ann.cookie)).status == 503
    await harness.move(workspace_id, "STANDBY", operation="ARCHIVING", op_started_at=NOW)
    with questions(harness.proxy.front_door.handler.lifecycle.database) as asked:
        opening = asyncio.create_task(harness.ask(f"/w/{workspace_id}/", ann.browser))
        await until_asked_again(asked)
        assert await desired(harness, workspace_id) == "STANDBY"
        await harness.move(workspace_id, "STANDBY")
        assert (await opening).status == 202
    assert await desired(harness, workspace_id) == "RUNNING"
