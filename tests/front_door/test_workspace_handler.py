"""Who may pass, and what of a request and an answer does."""

import asyncio
import os

import pytest

from testkit.deployment import BIN
from testkit.rows import NOW, new_workspace_id
from tests.front_door.fake_ide import Ide, running_ide
from tests.front_door.harness import NAVIGATION, FrontDoorHarness, Person, open_front_door


def names(ide: Ide, path: str) -> set[str]:
    return {name.lower() for name in ide.asked(path).headers}


async def test_owner_reaches_the_ide_with_session_and_with_token(
    harness: FrontDoorHarness, ann: Person
) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        for credential in (ann.cookie, ann.bearer):
            answer = await harness.ask(f"/w/{workspace_id}/api/x?a=1", credential, method="PUT", data=b"body")
            assert (answer.status, answer.text) == (200, f"PUT /w/{workspace_id}/api/x?a=1 body")


async def test_our_credentials_stay_behind(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id) as ide:
        cookies = f"theirs=1; codehub_session={ann.session}; __Host-codehub_session=x; also=2"
        await harness.ask(f"/w/{workspace_id}/cookie", {"Cookie": cookies})
        assert ide.asked("/cookie").headers["Cookie"] == "theirs=1; also=2"
        await harness.ask(f"/w/{workspace_id}/bearer", ann.bearer)
        sent = ide.asked("/bearer").headers
        assert sent["Authorization"] == f"token {ide.token}"
        assert ann.token not in str(sent)


async def test_an_ide_cannot_speak_for_our_origin(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        answer = await harness.ask(f"/w/{workspace_id}/", ann.cookie)
    assert answer.cookies == ["theirs=1; Path=/"]
    assert not {"Access-Control-Allow-Origin", "Service-Worker-Allowed"} & set(answer.headers)


async def test_address_of_the_client_is_ours_to_tell(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id) as ide:
        forged = {"X-Forwarded-For": "10.0.0.1", "X-Forwarded-Host": "evil.example", "Forwarded": "for=1"}
        await harness.ask(f"/w/{workspace_id}/x", {**ann.cookie, **forged})
        sent = ide.asked("/x").headers
        assert (sent["X-Forwarded-For"], sent["Host"]) == ("127.0.0.1", harness.url.removeprefix("http://"))
        assert "forwarded" not in names(ide, "/x")


async def test_stranger_is_sent_to_the_sign_in_page_and_back(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    answer = await harness.ask(f"/w/{workspace_id}/lab?a=b&c", NAVIGATION)
    wanted = f"%2Fw%2F{workspace_id}%2Flab%3Fa%3Db%26c"
    assert (answer.status, answer.headers["Location"]) == (303, f"/login?next={wanted}")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Cookie": "codehub_session=guessed"},
        {"Authorization": "Bearer codehub_pat_guessed"},
        {"Authorization": "Bearer something"},
    ],
)
async def test_programs_of_strangers_get_401(
    harness: FrontDoorHarness, ann: Person, headers: dict[str, str]
) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id) as ide:
        answer = await harness.ask(f"/w/{workspace_id}/", headers)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert '"code": "UNAUTHORIZED"' in answer.text
        assert ide.seen == []


@pytest.mark.parametrize("state", ["RUNNING", "STANDBY", "ARCHIVED", "ERROR"])
async def test_nobody_else_gets_anywhere(
    harness: FrontDoorHarness, ann: Person, bob: Person, state: str
) -> None:
    workspace_id = await harness.workspace(ann, state)
    async with running_ide(harness.root, workspace_id) as ide:
        for headers in (bob.cookie, bob.bearer, bob.browser, {**bob.cookie, "X-CodeHub-Wake": "1"}):
            for path in ("/", "/api", "/.codehub/progress", "/.codehub/start"):
                answer = await harness.ask(f"/w/{workspace_id}{path}", headers)
                assert answer.status == 403
                assert "home" not in answer.text, "the name is not theirs to know"
        assert ide.seen == []
    assert (await harness.row(workspace_id)).desired_state != "RUNNING" or state in {"RUNNING", "ERROR"}


async def test_no_such_workspace(harness: FrontDoorHarness, ann: Person) -> None:
    deleted = await harness.workspace(ann, phase="DELETED", desired_state="DELETED", deleted_at=NOW)
    for path in (f"/w/{new_workspace_id()}/", f"/w/{deleted}/", "/w/notes/", "/w/"):
        answer = await harness.ask(path, ann.cookie)
        assert (answer.status, '"WORKSPACE_NOT_FOUND"' in answer.text) == (404, True)
        page = await harness.ask(path, ann.browser)
        assert (page.status, page.headers["Content-Type"]) == (404, "text/html; charset=utf-8")


async def test_without_a_slash_it_moves_on(harness: FrontDoorHarness) -> None:
    workspace_id = new_workspace_id()
    answer = await harness.ask(f"/w/{workspace_id}?a=b")
    assert (answer.status, answer.headers["Location"]) == (308, f"/w/{workspace_id}/?a=b")


async def test_pages_of_other_sites_cannot_use_the_cookie(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    foreign = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Origin": "http://evil.example"}
    async with running_ide(harness.root, workspace_id) as ide:
        for _ in range(2):
            for method in ("GET", "POST"):
                answer = await harness.ask(f"/w/{workspace_id}/", {**ann.cookie, **foreign}, method=method)
                assert (answer.status, "FORBIDDEN" in answer.text) == (403, True)
            # Known by now, which must make no difference.
            await harness.ask(f"/w/{workspace_id}/warm", ann.cookie)
        health, warm = f"/w/{workspace_id}/api/status", f"/w/{workspace_id}/warm"
        assert {each.path for each in ide.seen} == {health, warm}


async def test_operators_pages_are_not_for_the_front_door(harness: FrontDoorHarness, ann: Person) -> None:
    for path in ("/metrics", "/metrics?x", "/readyz"):
        assert (await harness.ask(path, ann.cookie)).status == 404


async def test_requests_at_once_ask_the_database_once(harness: FrontDoorHarness, ann: Person) -> None:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        answers = await asyncio.gather(
            *(harness.ask(f"/w/{workspace_id}/{number}", ann.cookie) for number in range(50))
        )
    assert {answer.status for answer in answers} == {200}


@pytest.fixture
def code_server_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the proxy starts, which looks once for what is installed."""
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")


@pytest.mark.usefixtures("code_server_on_path")
async def test_the_prefix_is_stripped_for_an_ide_that_knows_none(
    proxy_environment: dict[str, str],
) -> None:
    async with open_front_door(proxy_environment) as harness:
        ann = await harness.person()
        workspace_id = await harness.workspace(ann)
        async with running_ide(harness.root, workspace_id, "code-server") as ide:
            for path in ("/", "/static/x.js?a=/w/b"):
                answer = await harness.ask(f"/w/{workspace_id}{path}", ann.cookie)
                assert (answer.status, answer.text) == (200, f"GET {path} ")
            # Of the programs behind it: their own tokens are theirs, ours are not.
            await harness.ask(f"/w/{workspace_id}/own", {**ann.cookie, "Authorization": "Bearer theirs"})
            assert ide.seen[-1].headers["Authorization"] == "Bearer theirs"
            await harness.ask(f"/w/{workspace_id}/ours", ann.bearer)
            assert "Authorization" not in ide.seen[-1].headers
