"""Who is admitted, and which parts of requests and responses pass."""

import asyncio
from uuid import UUID

import pytest

from codehub.domain.scopes import Scope
from codehub.services.credentials import TokenLimits, create_token
from testkit.rows import BY, NOW, new_workspace_id
from tests.front_door.fake_ide import FakeIde, running_ide
from tests.front_door.harness import NAVIGATION, FrontDoorHarness, Person


def names(ide: FakeIde, path: str) -> set[str]:
    return {name.lower() for name in ide.last_request(path).headers}


async def test_owner_reaches_the_ide_with_session_and_with_token(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        for credential in (ann.cookie, ann.bearer):
            response = await harness.request(
                f"/w/{workspace_id}/api/x?a=1", credential, method="PUT", data=b"body"
            )
            assert (response.status, response.text) == (200, "PUT /api/x?a=1 body")


async def test_a_token_enters_only_with_its_scope_and_only_its_workspaces(
    harness: FrontDoorHarness, ann: Person
) -> None:
    here, there = await harness.workspace(ann), await harness.workspace(ann)

    async def status(limits: TokenLimits) -> int:
        made = await create_token(
            harness.database, ann.user_id, "limited", expires_at=None, limits=limits, by=BY, now=NOW
        )
        # Twice: the second time the proxy has cached the caller.
        bearer = {"Authorization": f"Bearer {made.token}"}
        statuses = {(await harness.request(f"/w/{here}/api/x", bearer)).status for _ in range(2)}
        return statuses.pop() if len(statuses) == 1 else 0

    async with running_ide(harness.root, here):
        assert await status(TokenLimits()) == 200
        assert await status(TokenLimits(workspace_ids=frozenset({UUID(here)}))) == 200
        assert await status(TokenLimits(workspace_ids=frozenset({UUID(there)}))) == 403
        assert await status(TokenLimits(frozenset({Scope.READ}))) == 403


async def test_codehub_credentials_do_not_reach_the_ide(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id) as ide:
        cookies = f"theirs=1; codehub_session={ann.session}; __Host-codehub_session=x; also=2"
        await harness.request(f"/w/{workspace_id}/cookie", {"Cookie": cookies})
        assert ide.last_request("/cookie").headers["Cookie"] == "theirs=1; also=2"
        await harness.request(f"/w/{workspace_id}/bearer", ann.bearer)
        sent = ide.last_request("/bearer").headers
        assert sent["Authorization"] == f"token {ide.token}"
        assert ann.token not in str(sent)


async def test_an_ide_cannot_set_policy_for_the_origin(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        response = await harness.request(f"/w/{workspace_id}/", ann.cookie)
    assert response.cookies == ["theirs=1; Path=/"]
    assert not {"Access-Control-Allow-Origin", "Service-Worker-Allowed"} & set(response.headers)


async def test_forwarding_headers_of_the_client_are_replaced(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id) as ide:
        forged = {"X-Forwarded-For": "10.0.0.1", "X-Forwarded-Host": "evil.example", "Forwarded": "for=1"}
        await harness.request(f"/w/{workspace_id}/x", {**ann.cookie, **forged})
        sent = ide.last_request("/x").headers
        assert (sent["X-Forwarded-For"], sent["Host"]) == ("127.0.0.1", f"{workspace_id}.localhost:8080")
        assert "forwarded" not in names(ide, "/x")


async def test_a_browser_without_a_session_is_sent_to_the_sign_in_page_and_back(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    response = await harness.request(f"/w/{workspace_id}/lab?a=b&c", NAVIGATION)
    wanted = f"%2Fw%2F{workspace_id}%2Flab%3Fa%3Db%26c"
    assert (response.status, response.headers["Location"]) == (303, f"/login?next={wanted}")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Cookie": "codehub_session=guessed"},
        {"Authorization": "Bearer codehub_pat_guessed"},
        {"Authorization": "Bearer something"},
    ],
)
async def test_a_program_without_valid_credentials_gets_401(
    harness: FrontDoorHarness, ann: Person, headers: dict[str, str]
) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id) as ide:
        response = await harness.request(f"/w/{workspace_id}/", headers)
        assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert '"code": "UNAUTHORIZED"' in response.text
        assert ide.requests == []


@pytest.mark.parametrize("state", ["RUNNING", "STANDBY", "ARCHIVED", "ERROR"])
async def test_other_users_are_refused_everywhere(
    harness: FrontDoorHarness, ann: Person, bob: Person, state: str
) -> None:
    workspace_id = await harness.workspace(ann, state)
    async with running_ide(harness.root, workspace_id) as ide:
        for headers in (bob.cookie, bob.bearer, bob.browser, {**bob.cookie, "X-CodeHub-Wake": "1"}):
            for path in ("/", "/api", "/.codehub/progress", "/.codehub/start"):
                response = await harness.request(f"/w/{workspace_id}{path}", headers)
                assert response.status == 403
                assert "home" not in response.text, "the name must not leak"
        assert ide.requests == []
    assert (await harness.row(workspace_id)).desired_state != "RUNNING" or state in {"RUNNING", "ERROR"}


async def test_an_unknown_workspace_is_not_found(harness: FrontDoorHarness, ann: Person) -> None:
    deleted = await harness.workspace(ann, phase="DELETED", desired_state="DELETED", deleted_at=NOW)
    for path in (f"/w/{new_workspace_id()}/", f"/w/{deleted}/", "/w/notes/", "/w/"):
        response = await harness.request(path, ann.bearer)
        assert (response.status, '"WORKSPACE_NOT_FOUND"' in response.text) == (404, True)
        page = await harness.request(path, ann.browser)
        assert (page.status, page.headers["Content-Type"]) == (404, "text/html; charset=utf-8")


async def test_pages_of_other_sites_cannot_use_the_cookie(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    cross_site = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Origin": "http://evil.example"}
    async with running_ide(harness.root, workspace_id) as ide:
        for _ in range(2):
            for method in ("GET", "POST"):
                response = await harness.request(
                    f"/w/{workspace_id}/", {**ann.cookie, **cross_site}, method=method
                )
                assert (response.status, "FORBIDDEN" in response.text) == (403, True)
            # The caches are warm now, which must make no difference.
            await harness.request(f"/w/{workspace_id}/warm", ann.cookie)
        assert {each.path for each in ide.requests} == {"/api/status", "/warm"}


async def test_pages_for_operators_are_not_served(harness: FrontDoorHarness, ann: Person) -> None:
    for path in (
        "/metrics",
        "/metrics?x",
        "/readyz",
        "/%6detrics",
        "/%256detrics",
        "//metrics",
        "/./metrics",
    ):
        response = await harness.request(path, ann.cookie)
        assert (response.status, response.headers["X-Frame-Options"]) == (404, "DENY"), path


async def test_concurrent_first_requests_all_succeed(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        responses = await asyncio.gather(
            *(harness.request(f"/w/{workspace_id}/{number}", ann.cookie) for number in range(50))
        )
    assert {response.status for response in responses} == {200}
