"""Path mode: workspaces below `/w/` of the main origin."""

import os
from collections.abc import AsyncIterator

import pytest

from testkit.deployment import BIN
from testkit.rows import new_workspace_id
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import NAVIGATION, FrontDoorHarness, Person, open_front_door


@pytest.fixture
def proxy_environment(proxy_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    # A code-server that the proxy finds when it starts.
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    return {**proxy_environment, "CODEHUB_WORKSPACES_ORIGINS": "path"}


@pytest.fixture
async def harness(proxy_environment: dict[str, str]) -> AsyncIterator[FrontDoorHarness]:
    async with open_front_door(proxy_environment) as opened:
        yield opened


async def test_an_ide_with_a_base_path_gets_the_whole_path(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        for credential in (ann.cookie, ann.bearer, ann.browser):
            response = await harness.request(f"/w/{workspace_id}/lab?a=1", credential)
            assert (response.status, response.text) == (200, f"GET /w/{workspace_id}/lab?a=1 ")


async def test_a_path_without_a_slash_is_redirected(harness: FrontDoorHarness) -> None:
    workspace_id = new_workspace_id()
    response = await harness.request(f"/w/{workspace_id}?a=b")
    assert (response.status, response.headers["Location"]) == (308, f"/w/{workspace_id}/?a=b")


async def test_the_prefix_is_stripped_for_an_ide_without_one(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id, "code-server") as ide:
        for path in ("/", "/static/x.js?a=/w/b"):
            response = await harness.request(f"/w/{workspace_id}{path}", ann.cookie)
            assert (response.status, response.text) == (200, f"GET {path} ")
        # Tokens of programs in the workspace pass; CodeHub's tokens do not.
        await harness.request(f"/w/{workspace_id}/own", {**ann.cookie, "Authorization": "Bearer theirs"})
        assert ide.requests[-1].headers["Authorization"] == "Bearer theirs"
        await harness.request(f"/w/{workspace_id}/ours", ann.bearer)
        assert "Authorization" not in ide.requests[-1].headers


async def test_a_websocket_must_name_the_main_origin(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        socket = await harness.connect(f"/w/{workspace_id}/ws", {**ann.cookie, "Origin": harness.url})
        await socket.send_str("hello")
        assert (await socket.receive()).data == "hello"
        await socket.close()


async def test_a_browser_without_a_session_is_sent_to_the_sign_in_page(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    response = await harness.request(f"/w/{workspace_id}/lab?a=b", NAVIGATION)
    assert (response.status, response.headers["Location"]) == (
        303,
        f"/login?next=%2Fw%2F{workspace_id}%2Flab%3Fa%3Db",
    )
