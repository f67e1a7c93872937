"""Planted cookies are refused with an explanation, and removed."""

import json

import pytest

from codehub.cookies import DUPLICATE, TOO_LARGE
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import NAVIGATION, FrontDoorHarness, Person


@pytest.mark.parametrize("planted_first", [True, False])
async def test_a_second_session_cookie_is_refused_everywhere_and_its_copies_are_removed(
    harness: FrontDoorHarness, ann: Person, planted_first: bool
) -> None:
    workspace_id = await harness.workspace(ann)
    cookies = [f"codehub_session={ann.session}", "codehub_session=planted"]
    headers = {"Cookie": "; ".join(reversed(cookies) if planted_first else cookies)}
    async with running_ide(harness.root, workspace_id) as ide:
        before = len(ide.requests)
        for path in ("/api/v1/session", f"/w/{workspace_id}/deep/path", "/"):
            response = await harness.request(path, headers)
            assert (response.status, json.loads(response.text)["error"]["message"]) == (400, DUPLICATE)
            assert response.headers["X-Frame-Options"] == "DENY"
        assert len(ide.requests) == before
    removed = (await harness.request("/api/v1/session", headers)).cookies
    paths = ["/api", "/api/v1", "/api/v1/session"]
    assert removed == [f"codehub_session=; Max-Age=0; Path={path}" for path in paths] + [
        f"=removed; Max-Age=0; Path={path}" for path in ("/", *paths)
    ]


@pytest.mark.parametrize("name", ["codehub_session", "codehub_device", "codehub_oidc", "codehub_workspace"])
@pytest.mark.parametrize("spelling", ["{}=a; {}=b", "{}=a; {} =b", "{}=a; {}\t=b"])
async def test_each_of_our_cookies_is_refused_twice_however_it_is_spelled(
    harness: FrontDoorHarness, name: str, spelling: str
) -> None:
    response = await harness.request("/api/v1/sign-in", {"Cookie": spelling.format(name, name)})
    assert (response.status, json.loads(response.text)["error"]["message"]) == (400, DUPLICATE)


async def test_a_cookie_without_a_name_is_not_ours(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    entered = await harness.enter(ann.session, workspace_id)
    headers = {"Cookie": f"codehub_workspace; codehub_workspace={entered}"}
    async with running_ide(harness.root, workspace_id):
        assert (await harness.on_own(workspace_id, "/", headers)).status == 200


async def test_a_person_with_two_session_cookies_gets_a_page(harness: FrontDoorHarness, ann: Person) -> None:
    headers = {"Cookie": f"codehub_session={ann.session}; codehub_session=planted", **NAVIGATION}
    response = await harness.request("/", headers)
    assert (response.status, "Please try again" in response.text) == (400, True)
    assert response.headers["Content-Type"].startswith("text/html")


async def test_an_overflowing_cookie_jar_is_emptied_of_foreign_cookies(
    harness: FrontDoorHarness, ann: Person
) -> None:
    planted = "; ".join(f"evil{number}={'x' * 4000}" for number in range(20))
    headers = {"Cookie": f"codehub_session={ann.session}; {planted}"}
    response = await harness.request("/", headers)
    assert (response.status, json.loads(response.text)["error"]["message"]) == (431, TOO_LARGE)
    assert "evil0=; Max-Age=0; Path=/" in response.cookies
    assert not [each for each in response.cookies if each.startswith("codehub_")]
    assert "Clear-Site-Data" not in response.headers
    page = await harness.request("/", {**NAVIGATION, "Accept": "text/html", **headers})
    assert (page.status, "Please try again" in page.text) == (431, True)
    # Another large header is not about cookies.
    plain = await harness.request("/", {**ann.cookie, "X-Large": "x" * 40_000})
    assert (plain.status, plain.cookies, plain.text) == (431, [], "head too large\n")
