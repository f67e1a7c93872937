"""The response in each phase, and which requests start a workspace."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from codehub.domain.conditions import WorkspaceId
from testkit.rows import NOW
from testkit.waiting import until
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import FrontDoorHarness, Person
from tests.front_door.held_database import recorded_statements

WAKE = {"X-CodeHub-Wake": "true"}
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
FETCH = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": "same-origin"}


async def wait_until_retried(statements: list[str]) -> None:
    """Wait for a second attempt to lock the row: the first was refused."""

    async def again() -> bool:
        return sum("FOR NO KEY UPDATE" in statement for statement in statements) > 1

    await until(again, "the request is tried again")


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
async def test_a_person_gets_a_page_for_the_phase(
    harness: FrontDoorHarness, ann: Person, state: str, status: int, words: str
) -> None:
    workspace_id = await harness.workspace(ann, state)
    response = await harness.request(f"/w/{workspace_id}/lab", ann.browser)
    assert (response.status, response.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert words in response.text
    assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
    assert response.headers["Cache-Control"] == "no-store"


async def test_opening_a_stopped_workspace_starts_it(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    await harness.request(f"/w/{workspace_id}/", ann.browser)
    assert await desired(harness, workspace_id) == "RUNNING"


@pytest.mark.parametrize("state", ["ARCHIVED", "PENDING", "ERROR"])
@pytest.mark.parametrize("wake", [{}, WAKE])
async def test_nothing_else_is_started_without_a_decision(
    harness: FrontDoorHarness, ann: Person, state: str, wake: dict[str, str]
) -> None:
    workspace_id = await harness.workspace(ann, state)
    before = await desired(harness, workspace_id)
    for headers in (ann.browser, {**ann.cookie, **wake}):
        assert (await harness.request(f"/w/{workspace_id}/", headers)).status in {502, 503}
    assert await desired(harness, workspace_id) == before


@pytest.mark.parametrize("more", [{}, FETCH, {"Accept": "application/json"}, WEBSOCKET])
async def test_background_requests_never_start_a_workspace(
    harness: FrontDoorHarness, ann: Person, more: dict[str, str]
) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    headers = {**ann.cookie, **more, "Origin": harness.url}
    for method in ("GET",) if more is WEBSOCKET else ("GET", "POST", "PUT"):
        response = await harness.request(f"/w/{workspace_id}/api/kernels", headers, method=method)
        assert (response.status, response.headers["Retry-After"]) == (503, "5")
        assert '"code": "WORKSPACE_STOPPED"' in response.text
    assert await desired(harness, workspace_id) == "STANDBY"


async def test_background_requests_get_503_during_a_transition(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann, "STARTING")
    response = await harness.request(f"/w/{workspace_id}/", ann.cookie)
    assert (response.status, '"WORKSPACE_BUSY"' in response.text) == (503, True)


async def test_a_waking_request_is_held_until_the_workspace_runs(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    async with running_ide(harness.root, workspace_id):
        held = asyncio.create_task(harness.request(f"/w/{workspace_id}/x", {**ann.bearer, **WAKE}))

        async def started() -> bool:
            return await desired(harness, workspace_id) == "RUNNING"

        await until(started, "the request has started the workspace")
        await harness.move(workspace_id, "RUNNING")
        response = await held
    assert (response.status, response.text) == (200, "GET /x ")


async def test_a_program_waits_for_an_ide_that_does_not_answer_yet(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann, "RUNNING")
    held = asyncio.create_task(harness.request(f"/w/{workspace_id}/x", {**ann.bearer, **WAKE}))

    async def was_tried() -> bool:
        return harness.proxy.front_door.handler.outcomes["not_answering"] > 0

    await until(was_tried, "the IDE was tried")
    async with running_ide(harness.root, workspace_id):
        assert (await held).status == 200


async def test_running_limit_shows_what_runs_and_a_way_to_stop_it(
    harness: FrontDoorHarness, ann: Person
) -> None:
    running = [await harness.workspace(ann, name=f"busy-{number}") for number in range(2)]
    workspace_id = await harness.workspace(ann, "STANDBY")
    page = await harness.request(f"/w/{workspace_id}/", ann.browser)
    assert page.status == 502
    for number, other in enumerate(running):
        assert f"busy-{number}" in page.text
        assert f"/w/{other}/.codehub/stop" in page.text
    program = await harness.request(f"/w/{workspace_id}/", {**ann.bearer, **WAKE})
    assert (program.status, '"LIMIT_EXCEEDED"' in program.text) == (502, True)
    assert await desired(harness, workspace_id) == "STANDBY"


async def test_too_much_disk_space_is_explained_and_nothing_starts(
    harness: FrontDoorHarness, ann: Person
) -> None:
    measured = {"disk_used_bytes": 2**40, "disk_measured_at": datetime.now(UTC) + timedelta(minutes=1)}
    workspace_id = await harness.workspace(ann, "STANDBY", **measured)
    page = await harness.request(f"/w/{workspace_id}/", ann.browser)
    assert (page.status, "Ask an administrator for more space" in page.text) == (502, True)
    program = await harness.request(f"/w/{workspace_id}/", {**ann.bearer, **WAKE})
    assert (program.status, '"DISK_LIMIT_EXCEEDED"' in program.text) == (502, True)
    assert await desired(harness, workspace_id) == "STANDBY"


async def test_a_request_waits_for_a_running_slot_that_is_being_freed(
    harness: FrontDoorHarness, ann: Person
) -> None:
    await harness.workspace(ann)
    leaving = await harness.workspace(ann, "STOPPING")
    workspace_id = await harness.workspace(ann, "STANDBY")
    with recorded_statements(harness.proxy.front_door.handler.lifecycle.database) as statements:
        opening = asyncio.create_task(harness.request(f"/w/{workspace_id}/", ann.browser))
        await wait_until_retried(statements)
        await harness.move(leaving, "STANDBY")
        assert (await opening).status == 202
    assert await desired(harness, workspace_id) == "RUNNING"


async def test_an_ide_that_does_not_answer_is_a_bad_gateway(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    page = await harness.request(f"/w/{workspace_id}/", ann.browser)
    assert (page.status, page.headers["Content-Type"]) == (502, "text/html; charset=utf-8")
    program = await harness.request(f"/w/{workspace_id}/", ann.cookie)
    assert (program.status, '"UPSTREAM_UNAVAILABLE"' in program.text) == (502, True)


async def test_an_ide_that_moved_is_found_again(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        assert (await harness.request(f"/w/{workspace_id}/a", ann.cookie)).status == 200
    async with running_ide(harness.root, workspace_id) as second:
        assert (await harness.request(f"/w/{workspace_id}/b", ann.cookie)).status == 200
        assert second.last_request("/b")
    assert (await harness.request(f"/w/{workspace_id}/c", ann.cookie)).status == 502


async def test_a_request_waits_for_an_operation_that_just_began(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    # The cache says stopped, the row has changed, and no event was sent.
    assert (await harness.request(f"/w/{workspace_id}/", ann.cookie)).status == 503
    await harness.move(workspace_id, "STANDBY", operation="ARCHIVING", op_started_at=NOW)
    with recorded_statements(harness.proxy.front_door.handler.lifecycle.database) as statements:
        opening = asyncio.create_task(harness.request(f"/w/{workspace_id}/", ann.browser))
        await wait_until_retried(statements)
        assert await desired(harness, workspace_id) == "STANDBY"
        await harness.move(workspace_id, "STANDBY")
        assert (await opening).status == 202
    assert await desired(harness, workspace_id) == "RUNNING"
