"""A workspace's own origin: how a person enters, and what is served there and on the main origin."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.services.workspace_sessions import TICKET_LIFETIME, issue_ticket, redeem_ticket
from testkit.waiting import until
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import NAVIGATION, FrontDoorHarness, Person, Response, open_front_door
from tests.front_door.test_revocation import end_session

FETCH = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": "same-site"}
FRAME = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "cross-site"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def location(response: Response) -> str:
    assert response.status == 303, response.text
    return response.headers["Location"]


def own_path_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def cookie_of(response: Response) -> dict[str, str]:
    (cookie,) = response.cookies
    return {"Cookie": cookie.partition(";")[0]}


async def ticket_of(harness: FrontDoorHarness, person: Person, workspace_id: WorkspaceId) -> str:
    """Return the path with a ticket that the main origin redirects to."""
    return own_path_of(location(await harness.on_main(f"/w/{workspace_id}/lab?a=b", person.browser)))


async def test_a_person_enters_with_a_ticket_and_gets_a_cookie_for_this_host_only(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    own = f"http://{workspace_id}.localhost:8080"
    async with running_ide(harness.root, workspace_id) as ide:
        asked = await harness.on_own(workspace_id, "/lab?a=b", NAVIGATION)
        assert location(asked) == f"http://localhost:8080/w/{workspace_id}/lab?a=b"
        led = await harness.on_main(f"/w/{workspace_id}/lab?a=b", ann.browser)
        assert location(led).startswith(f"{own}/.codehub/enter?ticket=")
        assert (led.headers["Referrer-Policy"], led.headers["Cache-Control"]) == ("no-referrer", "no-store")
        entered = await harness.on_own(workspace_id, own_path_of(location(led)), NAVIGATION)
        assert location(entered) == f"{own}/lab?a=b"
        (cookie,) = entered.cookies
        assert re.fullmatch(r"codehub_workspace=[\w-]{43}; Path=/; HttpOnly; SameSite=Lax", cookie)
        opened = await harness.on_own(workspace_id, "/lab?a=b", {**NAVIGATION, **cookie_of(entered)})
        assert (opened.status, opened.text) == (200, "GET /lab?a=b ")
        assert "Cookie" not in ide.last_request("/lab").headers


async def test_on_https_the_cookie_is_secure_and_bound_to_its_host(
    proxy_environment: dict[str, str],
) -> None:
    public = {
        "CODEHUB_PUBLIC_BASE_URL": "https://hub.example",
        "CODEHUB_WORKSPACES_DOMAIN": "workspaces.example",
    }
    async with open_front_door({**proxy_environment, **public}) as harness:
        ann = await harness.person()
        workspace_id = await harness.workspace(ann)
        browser = {**ann.browser, "Cookie": f"__Host-codehub_session={ann.session}"}
        led = location(await harness.on_main(f"/w/{workspace_id}/", browser))
        assert led.startswith(f"https://{workspace_id}.workspaces.example/.codehub/enter?")
        entered = await harness.on_own(workspace_id, own_path_of(led), NAVIGATION)
        (cookie,) = entered.cookies
        assert cookie.startswith("__Host-codehub_workspace=")
        assert cookie.endswith("; Path=/; HttpOnly; SameSite=Lax; Secure")


async def test_a_ticket_is_used_once_whatever_process_takes_it(
    harness: FrontDoorHarness, proxy_environment: dict[str, str], ann: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    ticket = await ticket_of(harness, ann, workspace_id)
    assert (await harness.on_own(workspace_id, ticket, NAVIGATION)).cookies
    async with open_front_door(proxy_environment) as other:
        for each in (harness, other):
            again = await each.on_own(workspace_id, ticket, NAVIGATION)
            assert again.cookies == []
            assert location(again) == f"http://localhost:8080/w/{workspace_id}/lab?a=b"


async def test_a_ticket_is_for_one_workspace(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id, other = await harness.workspace(ann), await harness.workspace(ann)
    ticket = await ticket_of(harness, ann, workspace_id)
    assert (await harness.on_own(other, ticket, NAVIGATION)).cookies == []
    assert (await harness.on_own(workspace_id, ticket, NAVIGATION)).cookies, "a wrong host does not use it up"


async def test_a_ticket_expires(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id, now = await harness.workspace(ann), datetime.now(UTC)
    assert timedelta(0) < TICKET_LIFETIME <= timedelta(seconds=30)
    ticket = await issue_ticket(harness.database, ann.session_id, workspace_id, now=now)
    assert ticket is not None
    late = now + TICKET_LIFETIME
    assert await redeem_ticket(harness.database, ticket, workspace_id, now=late) is None
    assert await redeem_ticket(harness.database, ticket, workspace_id, now=now) is not None


@pytest.mark.parametrize("headers", [{}, FETCH, FRAME, {**NAVIGATION, "Sec-Purpose": "prefetch"}])
async def test_only_an_opened_page_uses_a_ticket(
    harness: FrontDoorHarness, ann: Person, headers: dict[str, str]
) -> None:
    workspace_id = await harness.workspace(ann)
    ticket = await ticket_of(harness, ann, workspace_id)
    refused = await harness.on_own(workspace_id, ticket, headers)
    assert (refused.status, refused.cookies) == (403, [])
    assert (await harness.on_own(workspace_id, ticket, NAVIGATION)).cookies


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ("%2Flab%3Fa%3Db", "/lab?a=b"),
        ("https%3A%2F%2Fevil.example%2F", "/"),
        ("%2F%2Fevil.example%2F", "//evil.example/"),
        ("%2F%5Cevil.example", "/%5Cevil.example"),
        ("%2Fx%0D%0ASet-Cookie%3A%20a", "/"),
        ("%2F.codehub%2Fenter", "/"),
        ("evil.example", "/"),
        ("", "/"),
    ],
)
async def test_a_ticket_never_leads_elsewhere(
    harness: FrontDoorHarness, ann: Person, wanted: str, path: str
) -> None:
    workspace_id = await harness.workspace(ann)
    ticket = parse_qs(urlsplit(await ticket_of(harness, ann, workspace_id)).query)["ticket"][0]
    entered = await harness.on_own(workspace_id, f"/.codehub/enter?ticket={ticket}&next={wanted}", NAVIGATION)
    assert location(entered).replace("\\", "%5C") == f"http://{workspace_id}.localhost:8080{path}"
    invalid = await harness.on_own(workspace_id, f"/.codehub/enter?ticket=x&next={wanted}", NAVIGATION)
    assert location(invalid).startswith(f"http://localhost:8080/w/{workspace_id}/")


async def test_the_cookie_of_one_workspace_opens_no_other(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id, other = await harness.workspace(ann), await harness.workspace(ann)
    cookie = {"Cookie": f"codehub_workspace={await harness.enter(ann.session, workspace_id)}"}
    async with running_ide(harness.root, workspace_id), running_ide(harness.root, other) as ide:
        for _ in range(2):
            assert (await harness.on_own(workspace_id, "/", cookie)).status == 200
            assert (await harness.on_own(other, "/", cookie)).status == 401
            # From the second time on, both workspaces are cached.
            assert (await harness.request(f"/w/{other}/warm", ann.cookie)).status == 200
        assert {each.path for each in ide.requests} == {"/api/status", "/warm"}
        assert (await harness.on_main("/api/v1/session", cookie)).status != 200


async def test_a_session_cookie_counts_for_nothing_on_a_workspaces_origin(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id) as ide:
        assert (await harness.on_own(workspace_id, "/", ann.cookie)).status == 401
        assert ide.requests == []


async def test_the_cookie_ends_with_the_session(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    ticket = await ticket_of(harness, ann, workspace_id)
    cookie = {"Cookie": f"codehub_workspace={await harness.enter(ann.session, workspace_id)}"}
    async with running_ide(harness.root, workspace_id):
        assert (await harness.on_own(workspace_id, "/", cookie)).status == 200
        await end_session(harness, ann)

        async def refused() -> bool:
            return (await harness.on_own(workspace_id, "/", cookie)).status == 401

        await until(refused, "the cookie is refused")
        late = await harness.on_own(workspace_id, ticket, NAVIGATION)
        assert (await harness.on_own(workspace_id, "/", cookie_of(late))).status == 401


@pytest.mark.parametrize(
    "path",
    [
        "/login",
        "/api/v1/session",
        "/api/v1/openapi.json",
        "/account",
        "/assets/x/app.css",
        "/metrics",
        "/healthz",
        "/w/0b8f3c1e-9d2a-4c55-8f3e-2b1a7c9d0e4f/",
    ],
)
async def test_nothing_of_the_control_plane_is_on_a_workspaces_origin(
    harness: FrontDoorHarness, ann: Person, path: str
) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        response = await harness.on_own(workspace_id, path, ann.bearer)
        assert (response.status, response.text) == (200, f"GET {path} "), "the IDE answers"
        assert (await harness.on_own(workspace_id, path, {})).status == 401


@pytest.mark.parametrize("name", ["start", "stop", "recover", "undelete", "purge", "nothing"])
async def test_script_in_a_workspace_can_send_no_form(
    harness: FrontDoorHarness, ann: Person, name: str
) -> None:
    workspace_id = await harness.workspace(ann)
    cookie = {"Cookie": f"codehub_workspace={await harness.enter(ann.session, workspace_id)}", **FORM}
    for method in ("GET", "POST"):
        response = await harness.on_own(workspace_id, f"/.codehub/{name}", cookie, method=method)
        assert response.status == 404


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "localhost.:8080", "localhost:9999"])
async def test_other_spellings_of_a_workspaces_host_serve_nothing(
    harness: FrontDoorHarness, ann: Person, host: str
) -> None:
    workspace_id = await harness.workspace(ann)
    async with harness.client.get(
        f"{harness.url}/api/v1/openapi.json", headers={"Host": f"{workspace_id}.{host}"}
    ) as response:
        assert response.status == 421


@pytest.mark.parametrize("headers", [{}, FETCH, FRAME, {"X-CodeHub-Wake": "true"}])
async def test_on_the_main_origin_only_an_opened_page_leads_to_a_workspace(
    harness: FrontDoorHarness, ann: Person, headers: dict[str, str]
) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id) as ide:
        for credential in (ann.cookie, ann.bearer):
            response = await harness.on_main(f"/w/{workspace_id}/", {**credential, **headers})
            assert response.status == 403
            assert "Location" not in response.headers
            assert f"the url in GET /api/v1/workspaces/{workspace_id}" in response.text
        assert ide.requests == []


async def test_another_user_gets_no_ticket(harness: FrontDoorHarness, ann: Person, bob: Person) -> None:
    workspace_id = await harness.workspace(ann)
    assert (await harness.on_main(f"/w/{workspace_id}/", bob.browser)).status == 403


async def test_a_form_of_the_main_origin_may_lead_to_a_workspace(
    harness: FrontDoorHarness, ann: Person
) -> None:
    """Browsers check the Content-Security-Policy of the page with the form for each redirect."""
    workspace_id = await harness.workspace(ann, "ARCHIVED")
    page = await harness.on_main(f"/w/{workspace_id}/", ann.browser)
    assert page.status == 502
    assert "form-action 'self' http://*.localhost:8080;" in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "[::1]:8080"])
async def test_pages_on_another_name_of_loopback_lead_to_the_main_origin(
    harness: FrontDoorHarness, ann: Person, host: str
) -> None:
    workspace_id = await harness.workspace(ann)
    for path in ("/account?x=1", f"/w/{workspace_id}/lab?a=b"):
        headers = {**ann.browser, "Host": host}
        async with harness.client.get(harness.url + path, headers=headers, allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (307, f"http://localhost:8080{path}")
