"""Ports of workspaces on origins of their own: who enters, what passes, and when it ends."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import aiohttp
import pytest
from sqlalchemy import update

from codehub.db.models import User, Workspace
from codehub.domain.conditions import WorkspaceId
from codehub.domain.port_shares import Audience, PortShare, serialize
from codehub.services.identity import sign_out
from testkit.rows import BY
from testkit.waiting import until
from tests.front_door.fake_ide import running_ide
from tests.front_door.fake_program import FakeProgram, running_program
from tests.front_door.harness import NAVIGATION, FrontDoorHarness, Person, Response, open_front_door

BROWSER = {**NAVIGATION, "Accept": "text/html"}
FETCH = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": "same-origin"}
NO_PORT = 1
SOON = timedelta(seconds=2)


@pytest.fixture
async def harness(proxy_environment: dict[str, str]) -> AsyncIterator[FrontDoorHarness]:
    async with open_front_door({**proxy_environment, "CODEHUB_PORTS_SHARING": "public"}) as opened:
        yield opened


@pytest.fixture
async def workspace_id(harness: FrontDoorHarness, ann: Person) -> WorkspaceId:
    return await harness.workspace(ann)


@pytest.fixture
async def program(harness: FrontDoorHarness, workspace_id: WorkspaceId) -> AsyncIterator[FakeProgram]:
    async with running_program(harness.root, workspace_id) as running:
        yield running


class Visitors:
    """People at a port of a workspace."""

    def __init__(self, harness: FrontDoorHarness, workspace_id: WorkspaceId, port: int) -> None:
        self.harness, self.workspace_id, self.port = harness, workspace_id, port
        self.origin = harness.origins.port_origin_of(workspace_id, port) or ""
        self.entrance = f"/p/{workspace_id}/{port}"

    @property
    def host(self) -> dict[str, str]:
        return {"Host": urlsplit(self.origin).netloc}

    async def get(self, path: str = "/", headers: dict[str, str] | None = None) -> Response:
        return await self.harness._send(path, {**(headers or {}), **self.host}, "GET", None)

    async def enter(self, person: Person, path: str = "/") -> dict[str, str]:
        """Enter from the main origin like a browser; return the cookie."""
        led = await self.harness.on_main(self.entrance + path, person.browser)
        assert led.status == 303, led.text
        target = led.headers["Location"]
        assert target.startswith(self.origin)
        entered = await self.get(target.removeprefix(self.origin), BROWSER)
        assert entered.headers["Location"] == self.origin + path
        return {"Cookie": entered.cookies[0].partition(";")[0]}

    async def share(self, audience: Audience, lasts: timedelta | None = None) -> None:
        now = datetime.now(UTC)
        await self.save({self.port: PortShare(audience, now, now + lasts if lasts else None)})

    async def save(self, shares: dict[int, PortShare]) -> None:
        async with self.harness.database.transaction() as session:
            await session.execute(
                update(Workspace)
                .where(Workspace.id == UUID(self.workspace_id))
                .values(port_shares=serialize(shares))
            )

    async def until_status(self, status: int, headers: dict[str, str]) -> None:
        async def is_so() -> bool:
            return (await self.get("/", headers)).status == status

        await until(is_so, f"the port responds with {status}")


@pytest.fixture
def visitors(harness: FrontDoorHarness, workspace_id: WorkspaceId, program: FakeProgram) -> Visitors:
    return Visitors(harness, workspace_id, program.port)


async def test_the_owner_opens_a_port_with_a_ticket_from_the_main_origin(
    visitors: Visitors, ann: Person, program: FakeProgram
) -> None:
    cookie = await visitors.enter(ann, "/deep/page?x=1")
    response = await visitors.get("/deep/page?x=1", {**cookie, **FETCH})
    seen = json.loads(response.text)
    assert seen["path"] == "/deep/page?x=1"
    assert seen["headers"]["Host"] == visitors.host["Host"]
    assert seen["headers"]["X-Forwarded-Host"] == visitors.host["Host"]
    assert "Cookie" not in seen["headers"], "our cookie is not the program's"
    assert response.cookies == ["theirs=1; Path=/"], "it cannot set ours"


async def test_a_personal_token_of_the_owner_opens_it_and_is_not_passed_on(
    visitors: Visitors, ann: Person, bob: Person, program: FakeProgram
) -> None:
    assert "Authorization" not in json.loads((await visitors.get("/", ann.bearer)).text)["headers"]
    assert (await visitors.get("/", bob.bearer)).status == 403
    await visitors.share(Audience.USERS)
    await visitors.until_status(403, bob.bearer)
    assert len(program.requests) == 1


async def test_a_port_is_private_until_it_is_shared(
    visitors: Visitors, bob: Person, program: FakeProgram
) -> None:
    assert (await visitors.get("/")).status == 401
    led = await visitors.get("/a?b", BROWSER)
    assert (led.status, led.headers["Location"]) == (
        303,
        f"{visitors.harness.origins.public_url}{visitors.entrance}/a?b",
    )
    assert (
        (await visitors.harness.on_main(f"{visitors.entrance}/", BROWSER))
        .headers["Location"]
        .startswith("/login?next=%2Fp%2F")
    )
    refused = await visitors.harness.on_main(f"{visitors.entrance}/", bob.browser)
    assert (refused.status, "This port is not shared" in refused.text) == (403, True)
    assert program.requests == []


async def test_a_port_shared_with_users_takes_a_session_and_public_ones_take_nothing(
    visitors: Visitors, ann: Person, bob: Person
) -> None:
    await visitors.share(Audience.USERS)
    cookie = await visitors.enter(bob)
    assert (await visitors.get("/", cookie)).status == 200
    assert (await visitors.get("/")).status == 401
    await visitors.share(Audience.PUBLIC)
    await visitors.until_status(200, {})
    # A public port needs no ticket, but the main origin still redirects there.
    led = await visitors.harness.on_main(f"{visitors.entrance}/x", BROWSER)
    assert led.headers["Location"] == f"{visitors.origin}/x"
    assert (await visitors.get("/", await visitors.enter(ann))).status == 200


async def test_shares_expire_and_are_revoked_within_seconds(visitors: Visitors, bob: Person) -> None:
    await visitors.share(Audience.USERS)
    cookie = await visitors.enter(bob)
    await visitors.save({})
    await visitors.until_status(403, cookie)
    await visitors.share(Audience.PUBLIC)
    await visitors.until_status(200, {})
    await visitors.share(Audience.PUBLIC, SOON)
    await visitors.until_status(401, {})


async def test_nothing_of_a_disabled_owner_is_shared(visitors: Visitors, ann: Person) -> None:
    await visitors.share(Audience.PUBLIC)
    await visitors.until_status(200, FETCH)
    async with visitors.harness.database.transaction() as session:
        # Only the account: the workspace may stop later, after an operation that is in progress.
        disabled = update(User).where(User.id == ann.user_id)
        await session.execute(disabled.values(disabled_at=datetime.now(UTC)))
    await visitors.until_status(401, FETCH)


async def test_another_port_is_not_shared_with_it(
    harness: FrontDoorHarness, visitors: Visitors, bob: Person
) -> None:
    await visitors.share(Audience.PUBLIC)
    other = Visitors(harness, visitors.workspace_id, NO_PORT)
    assert (await other.get("/")).status == 401
    assert (await harness.on_main(f"{other.entrance}/", bob.browser)).status == 403


async def test_cookies_and_tickets_are_for_one_port_alone(
    harness: FrontDoorHarness, visitors: Visitors, ann: Person, program: FakeProgram
) -> None:
    other = Visitors(harness, visitors.workspace_id, NO_PORT)
    of_port, of_other = await visitors.enter(ann), await other.enter(ann)
    of_ide = {"Cookie": f"codehub_workspace={await harness.enter(ann.session, visitors.workspace_id)}"}
    assert (await visitors.get("/", of_port)).status == 200
    for wrong in (of_other, of_ide, ann.cookie):
        assert (await visitors.get("/", wrong)).status == 401
    for wrong in (of_other, of_port):
        assert (await harness.on_own(visitors.workspace_id, "/", wrong)).status == 401
    led = await harness.on_main(f"{visitors.entrance}/", ann.browser)
    ticket = led.headers["Location"].removeprefix(visitors.origin)
    for elsewhere in (other.get, lambda path, head: harness.on_own(visitors.workspace_id, path, head)):
        assert (await elsewhere(ticket, BROWSER)).cookies == []
    assert (await visitors.get(ticket, BROWSER)).cookies, "the ticket itself is valid"
    assert (await visitors.get(ticket, BROWSER)).cookies == []
    assert len(program.requests) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ],
)
async def test_pages_of_other_origins_cannot_use_the_cookie(
    visitors: Visitors, ann: Person, program: FakeProgram, headers: dict[str, str]
) -> None:
    cookie = await visitors.enter(ann)
    assert (await visitors.get("/", {**cookie, **headers})).status == 403
    assert program.requests == []
    # A public port needs no cookie, so other origins may use it anonymously.
    await visitors.share(Audience.PUBLIC)
    await visitors.until_status(200, {**cookie, **headers})
    noted = visitors.harness.proxy.activity_log.uses_noted
    await visitors.get("/", {**cookie, **headers})
    assert visitors.harness.proxy.activity_log.uses_noted == noted


async def test_where_nothing_listens_a_page_says_so_and_tries_again(
    harness: FrontDoorHarness, visitors: Visitors, ann: Person
) -> None:
    silent = Visitors(harness, visitors.workspace_id, NO_PORT)
    cookie = await silent.enter(ann)
    page = await silent.get("/", {**cookie, **BROWSER})
    assert (page.status, "Nothing is at port 1 yet" in page.text) == (502, True)
    assert "data-reload" in page.text
    assert "No program answers on port 1" in (await silent.get("/", cookie)).text


async def test_codehubs_own_port_and_instances_without_an_agent_are_explained(
    harness: FrontDoorHarness, visitors: Visitors, ann: Person
) -> None:
    reserved = Visitors(harness, visitors.workspace_id, 3128)
    refused = await reserved.get("/", ann.bearer)
    assert (refused.status, "used by CodeHub itself" in refused.text) == (409, True)
    old = await harness.workspace(ann)
    async with running_ide(harness.root, old):
        without = Visitors(harness, old, 3000)
        page = await without.get("/", {**await without.enter(ann), **BROWSER})
        assert (page.status, "Restart it to open its ports" in page.text) == (409, True)


async def test_the_owner_wakes_a_workspace_and_guests_do_not(
    harness: FrontDoorHarness, ann: Person, bob: Person
) -> None:
    workspace_id = await harness.workspace(ann, "STANDBY")
    visitors = Visitors(harness, workspace_id, 3000)
    await visitors.share(Audience.PUBLIC)
    page = await visitors.get("/", BROWSER)
    assert (page.status, "Only its owner can start it" in page.text) == (503, True)
    assert harness.proxy.front_door.handler.outcomes["port_stopped"] == 1, "the metrics count it"
    assert (await visitors.get("/", {"X-CodeHub-Wake": "true"})).status == 503
    await harness.on_main(f"{visitors.entrance}/", bob.browser)
    assert (await harness.row(workspace_id)).desired_state == "STANDBY"
    cookie = await visitors.enter(ann)
    assert (await harness.row(workspace_id)).desired_state == "RUNNING"
    following = await visitors.get("/", {**cookie, **BROWSER})
    assert (following.status, 'data-progress="/.codehub/progress"' in following.text) == (202, True)


async def test_only_what_the_owner_does_counts_as_use(
    visitors: Visitors, ann: Person, bob: Person, program: FakeProgram
) -> None:
    log = visitors.harness.proxy.activity_log
    await visitors.share(Audience.USERS)
    guest, owner = await visitors.enter(bob), await visitors.enter(ann)
    noted = log.uses_noted
    await visitors.get("/", {**guest, **BROWSER})
    await visitors.get("/poll", {**owner, **FETCH})
    async with open_socket(visitors, owner) as socket:
        for _ in range(3):
            await socket.send_str("x" * 1000)
            await socket.receive()
    assert (log.uses_noted, len(program.requests)) == (noted, 3)
    await visitors.get("/", {**owner, **BROWSER})
    assert log.uses_noted == noted + 1


def open_socket(visitors: Visitors, headers: dict[str, str]) -> aiohttp.client._WSRequestContextManager:
    return visitors.harness.client.ws_connect(
        f"{visitors.harness.url}/hmr",
        headers={"Origin": visitors.origin, **headers, **visitors.host},
        protocols=["vite-hmr"],
    )


async def test_websockets_pass_with_their_subprotocol(visitors: Visitors, ann: Person) -> None:
    async with open_socket(visitors, await visitors.enter(ann)) as socket:
        assert socket.protocol == "vite-hmr"
        await socket.send_str("hello")
        assert (await socket.receive()).data == "hello"
    with pytest.raises(aiohttp.WSServerHandshakeError):
        await open_socket(visitors, {**await visitors.enter(ann), "Origin": "http://evil.example"})


async def is_closed(socket: aiohttp.ClientWebSocketResponse[bool]) -> bool:
    message = await socket.receive(timeout=60)
    return message.type in {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.ERROR}


async def test_open_websockets_of_guests_end_with_the_share(
    visitors: Visitors, ann: Person, bob: Person
) -> None:
    await visitors.share(Audience.PUBLIC)
    public = await open_socket(visitors, {})
    await visitors.share(Audience.USERS)
    assert await is_closed(public), "it is no longer public"
    guest, owner = await visitors.enter(bob), await visitors.enter(ann)
    with_guest, with_owner = await open_socket(visitors, guest), await open_socket(visitors, owner)
    await visitors.save({})
    assert await is_closed(with_guest)
    await with_owner.send_str("still here")
    assert (await with_owner.receive()).data == "still here"
    await with_owner.close()


async def test_open_websockets_of_guests_end_when_the_share_expires(visitors: Visitors) -> None:
    await visitors.share(Audience.PUBLIC)
    guest = await open_socket(visitors, {})
    await visitors.share(Audience.PUBLIC, SOON)
    assert await is_closed(guest)


async def test_open_streams_of_guests_end_with_their_session(visitors: Visitors, bob: Person) -> None:
    await visitors.share(Audience.USERS)
    cookie = await visitors.enter(bob)
    async with visitors.harness.client.get(
        f"{visitors.harness.url}/stream", headers={**cookie, **visitors.host}
    ) as response:
        assert await response.content.readline()
        await sign_out(visitors.harness.database, bob.session_id, by=BY, now=datetime.now(UTC))
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_nothing_of_the_control_plane_is_on_a_ports_origin(
    visitors: Visitors, ann: Person, program: FakeProgram
) -> None:
    cookie = await visitors.enter(ann)
    for path in ("/login", "/api/v1/session", f"/w/{visitors.workspace_id}/", "/metrics"):
        assert json.loads((await visitors.get(path, cookie)).text)["path"] == path
    for name in ("start", "stop", "purge"):
        assert (await visitors.get(f"/.codehub/{name}", cookie)).status == 404


@pytest.mark.parametrize("label", ["03000--{id}", "3000---{id}", "0--{id}", "65536--{id}", "3000-{id}"])
async def test_odd_spellings_of_a_port_are_nobodys_origin(
    harness: FrontDoorHarness, workspace_id: WorkspaceId, ann: Person, label: str
) -> None:
    host = f"{label.format(id=workspace_id)}{harness.origins.suffix}"
    response = await harness._send("/", {**ann.bearer, "Host": host}, "GET", None)
    assert response.status == 421


async def test_a_workspace_that_does_not_exist_is_not_revealed(harness: FrontDoorHarness) -> None:
    nobody = Visitors(harness, WorkspaceId(str(uuid4())), 3000)
    assert (await nobody.get("/")).status == 401


async def test_only_a_person_gets_a_ticket(visitors: Visitors, ann: Person) -> None:
    for headers in (ann.bearer, {**ann.cookie, **FETCH}, {**ann.bearer, **BROWSER}):
        refused = await visitors.harness.on_main(f"{visitors.entrance}/", headers)
        assert (refused.status, "Location" in refused.headers) == (403, False)
