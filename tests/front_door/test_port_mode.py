"""Port mode: people enter in the same way, although all ports share one host and its cookies."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import NAVIGATION, FrontDoorHarness, Person, open_front_door
from tests.front_door.proxy_process import free_pair, is_listening, running_proxy
from tests.front_door.test_own_origins import cookie_of, location, own_path_of


@pytest.fixture
def proxy_environment(proxy_environment: dict[str, str]) -> dict[str, str]:
    return {
        **proxy_environment,
        "CODEHUB_WORKSPACES_ORIGINS": "port",
        "CODEHUB_WORKSPACES_PORTS": "9000-9003",
    }


@pytest.fixture
async def harness(proxy_environment: dict[str, str]) -> AsyncIterator[FrontDoorHarness]:
    async with open_front_door(proxy_environment) as opened:
        yield opened


async def test_a_person_enters_and_gets_a_cookie_for_this_port_only(
    harness: FrontDoorHarness, proxy_environment: dict[str, str], ann: Person
) -> None:
    first, second = await harness.workspace(ann), await harness.workspace(ann)
    cookies = ann.cookie["Cookie"]
    async with running_ide(harness.root, first) as ide, running_ide(harness.root, second):
        for workspace_id, port in ((first, 9000), (second, 9001)):
            led = location(await harness.on_main(f"/w/{workspace_id}/lab", ann.browser))
            assert led.startswith(f"http://localhost:{port}/.codehub/enter?ticket=")
            entered = await harness.on_own(workspace_id, own_path_of(led), NAVIGATION)
            assert location(entered) == f"http://localhost:{port}/lab"
            name = cookie_of(entered)["Cookie"].partition("=")[0]
            assert name == f"codehub_workspace_{port}"
            # A browser sends every cookie of the host to every port.
            cookies += f"; {cookie_of(entered)['Cookie']}"
        assert (await harness.on_own(first, "/x", {"Cookie": f"{cookies}; theirs=1"})).text == "GET /x "
        assert ide.last_request("/x").headers["Cookie"] == "theirs=1"
        # Another process learns whose port it is.
        async with open_front_door(proxy_environment) as other:
            assert (await other.on_own(second, "/y", {"Cookie": cookies})).text == "GET /y "


async def test_cookies_of_other_ports_count_for_nothing(harness: FrontDoorHarness, ann: Person) -> None:
    first, second = await harness.workspace(ann), await harness.workspace(ann)
    for workspace_id in (first, second):
        await harness.on_main(f"/w/{workspace_id}/", ann.browser)
    token = await harness.enter(ann.session, first)
    async with running_ide(harness.root, first), running_ide(harness.root, second) as ide:
        good = {"Cookie": f"codehub_workspace_9000={token}"}
        assert (await harness.on_own(first, "/", good)).status == 200
        for name in ("codehub_workspace_9000", "codehub_workspace_9001", "codehub_workspace"):
            assert (await harness.on_own(second, "/", {"Cookie": f"{name}={token}"})).status == 401
        assert (await harness.on_own(second, "/", ann.cookie)).status == 401
        assert ide.requests == []


async def test_the_ports_of_other_workspaces_are_foreign(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    await harness.on_main(f"/w/{workspace_id}/", ann.browser)
    cookie = {"Cookie": f"codehub_workspace_9000={await harness.enter(ann.session, workspace_id)}"}
    async with running_ide(harness.root, workspace_id) as ide:
        for foreign in (
            {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
            {"Origin": "http://localhost:9001"},
            {"Origin": "http://localhost:8080"},
        ):
            assert (await harness.on_own(workspace_id, "/", {**cookie, **foreign})).status == 403
        assert ide.requests == []


async def test_a_second_cookie_of_this_port_is_refused(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    await harness.on_main(f"/w/{workspace_id}/", ann.browser)
    token = await harness.enter(ann.session, workspace_id)
    async with running_ide(harness.root, workspace_id) as ide:
        twice = {"Cookie": f"codehub_workspace_9000=theirs; codehub_workspace_9000={token}"}
        assert (await harness.on_own(workspace_id, "/", twice)).status == 400
        assert ide.requests == []


async def test_a_port_nobody_has_serves_nothing(harness: FrontDoorHarness, ann: Person) -> None:
    for path in ("/", "/api/v1/openapi.json", "/.codehub/enter?ticket=x"):
        headers = {**ann.browser, "Host": "localhost:9003"}
        async with harness.client.get(harness.url + path, headers=headers) as response:
            assert response.status == 421


async def test_the_proxy_listens_on_every_port(
    harness: FrontDoorHarness, proxy_environment: dict[str, str], ann: Person
) -> None:
    workspace_id, first = await harness.workspace(ann), free_pair()
    ports = {"CODEHUB_WORKSPACES_PORTS": f"{first}-{first + 1}"}
    async with (
        running_ide(harness.root, workspace_id),
        running_proxy({**proxy_environment, **ports}, "--workers", "2") as proxy,
    ):
        assert is_listening(first + 1)
        headers = {**ann.browser, "Host": f"localhost:{proxy.port}"}
        async with harness.client.get(
            f"{proxy.base_url}/w/{workspace_id}/", headers=headers, allow_redirects=False
        ) as led:
            assert led.headers["Location"].startswith(f"http://localhost:{first}/.codehub/enter?ticket=")
        # A new connection for each, so that both workers are asked.
        for _ in range(8):
            async with (
                aiohttp.ClientSession() as client,
                client.get(
                    f"http://127.0.0.1:{first}/x", headers={**ann.bearer, "Host": f"localhost:{first}"}
                ) as response,
            ):
                assert (response.status, await response.text()) == (200, "GET /x ")


async def test_every_workspace_has_a_port_or_says_that_none_is_left(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspaces = [await harness.workspace(ann) for _ in range(5)]
    responses = await asyncio.gather(
        *(harness.on_main(f"/w/{each}/", ann.browser) for each in workspaces for _ in range(2))
    )
    ports = {response.headers["Location"][:21] for response in responses if response.status == 303}
    assert ports == {f"http://localhost:{port}" for port in range(9000, 9004)}
    refused = [response for response in responses if response.status == 503]
    assert len(refused) == 2
    assert "CODEHUB_WORKSPACES_PORTS" in refused[0].text


async def test_pages_may_lead_to_every_port(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann, "ARCHIVED")
    page = await harness.on_main(f"/w/{workspace_id}/", ann.browser)
    assert "form-action 'self' http://localhost:*;" in page.headers["Content-Security-Policy"]
