"""Requests that no browser makes: cookies and tickets at the wrong host, and hosts that only look right."""

from collections.abc import AsyncIterator, Callable
from urllib.parse import quote, urljoin, urlsplit
from uuid import uuid4

import httpx
import pytest

from codehub.origins import PLAIN_COOKIE, WORKSPACE_COOKIE
from testkit.waiting import DEADLINE_SECONDS
from tests.attacks.harness import ALICE, PASSWORD, Harness

pytestmark = pytest.mark.parametrize("harness", ["subdomain"], indirect=True)

ELSEWHERE = ["//evil.test/", "/\\evil.test/", "@evil.test/", ".evil.test/", "http://evil.test/"]
NAVIGATION = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


class Visitor:
    """A program with Alice's credentials that can send any Host header."""

    def __init__(self, harness: Harness, client: httpx.AsyncClient) -> None:
        self.harness, self.client = harness, client
        self.session = ""

    async def get(self, url: str, *cookies: str, host: str | None = None, **fields: str) -> httpx.Response:
        """Request a URL from the proxy, with the URL's host or another one."""
        parts = urlsplit(url)
        query = f"?{parts.query}" if parts.query else ""
        address = f"http://127.0.0.1:{urlsplit(self.harness.main).port}{parts.path}{query}"
        # A request without Sec-Fetch-Site is like one of the address bar.
        headers = {"Host": host or parts.netloc, **NAVIGATION, "Referer": f"{self.harness.main}/", **fields}
        return await self.client.get(address, headers={**headers, "Cookie": "; ".join(cookies)})

    async def sign_in(self) -> None:
        url = f"http://127.0.0.1:{urlsplit(self.harness.main).port}/api/v1/login"
        headers = {"Host": urlsplit(self.harness.main).netloc, "Origin": self.harness.main}
        response = await self.client.post(
            url, json={"username": ALICE, "password": PASSWORD}, headers=headers
        )
        self.session = f"{PLAIN_COOKIE}={response.cookies[PLAIN_COOKIE]}"
        self.client.cookies.clear()

    async def ticket(self) -> str:
        """Return the address that redeems a ticket for the hostile workspace."""
        response = await self.get(f"{self.harness.main}/w/{self.harness.workspaces.hostile}/", self.session)
        return str(response.headers["Location"])

    async def enter(self) -> str:
        """Return the cookie of the hostile workspace."""
        response = await self.get(await self.ticket())
        self.client.cookies.clear()
        return f"{WORKSPACE_COOKIE}={response.cookies[WORKSPACE_COOKIE]}"

    def has_entered(self, marker: str) -> bool:
        workspaces = self.harness.workspaces
        return any(
            marker in workspaces.requests_of(each) for each in (workspaces.hostile, workspaces.neighbor)
        )


@pytest.fixture
async def visitor(harness: Harness) -> AsyncIterator[Visitor]:
    async with httpx.AsyncClient(timeout=DEADLINE_SECONDS) as client:
        visitor = Visitor(harness, client)
        await visitor.sign_in()
        yield visitor


async def test_cookie_of_a_workspace_opens_it_alone(visitor: Visitor) -> None:
    marker, cookie, harness = uuid4().hex, await visitor.enter(), visitor.harness
    await visitor.get(f"{harness.neighbor}{marker}", cookie)
    await visitor.get(f"{harness.neighbor}{marker}", visitor.session)
    await visitor.get(f"{harness.own}{marker}", visitor.session)
    assert not visitor.has_entered(marker)
    # The positive control: the right cookie at the right host.
    await visitor.get(f"{harness.own}{marker}", cookie)
    assert visitor.has_entered(marker)


async def test_cookie_of_a_workspace_is_nothing_on_the_main_origin(visitor: Visitor) -> None:
    cookie, url = await visitor.enter(), f"{visitor.harness.main}/api/v1/session"
    token = cookie.partition("=")[2]
    assert (await visitor.get(url, cookie)).status_code == httpx.codes.UNAUTHORIZED
    assert (await visitor.get(url, f"{PLAIN_COOKIE}={token}")).status_code == httpx.codes.UNAUTHORIZED
    assert ALICE in (await visitor.get(url, visitor.session)).text


async def test_two_sessions_are_refused_by_the_api_and_by_the_proxy(visitor: Visitor) -> None:
    harness = visitor.harness
    mallory = f"{PLAIN_COOKIE}={harness.mallory_session}"
    for cookies in ((visitor.session, mallory), (mallory, visitor.session)):
        for path in ("/api/v1/session", f"/w/{harness.workspaces.hostile}/"):
            response = await visitor.get(harness.main + path, *cookies)
            assert response.status_code >= httpx.codes.BAD_REQUEST
            assert ALICE not in response.text


async def test_ticket_works_once_and_at_its_own_host(visitor: Visitor) -> None:
    url, neighbor = await visitor.ticket(), urlsplit(visitor.harness.neighbor).netloc
    assert not (await visitor.get(url, host=neighbor)).cookies
    assert (await visitor.get(url)).cookies
    visitor.client.cookies.clear()
    assert not (await visitor.get(url)).cookies


@pytest.mark.parametrize("wanted", ELSEWHERE)
async def test_ticket_leads_to_no_other_site(visitor: Visitor, wanted: str) -> None:
    url, own = (await visitor.ticket()).partition("&next=")[0], visitor.harness.own
    response = await visitor.get(f"{url}&next={quote(wanted, safe='')}")
    assert response.cookies
    target = urljoin(own, response.headers["Location"])
    assert urlsplit(target).netloc == urlsplit(own).netloc


HOSTS: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "dot at the end": lambda host: host.replace(":", ".:"),
    "other port": lambda host: f"{host.partition(':')[0]}:1",
    "longer domain": lambda host: host.replace(":", ".evil.test:"),
    "name before it": lambda host: f"x.{host}",
    "user before it": lambda host: f"evil@{host}",
}


@pytest.mark.parametrize("trick", HOSTS)
async def test_host_that_only_looks_right_opens_nothing(visitor: Visitor, trick: str) -> None:
    marker, cookie = uuid4().hex, await visitor.enter()
    host = HOSTS[trick](urlsplit(visitor.harness.own).netloc)
    await visitor.get(f"{visitor.harness.own}{marker}", cookie, visitor.session, host=host)
    assert not visitor.has_entered(marker)


async def test_forwarded_host_is_not_believed(visitor: Visitor) -> None:
    marker, cookie, harness = uuid4().hex, await visitor.enter(), visitor.harness
    host = urlsplit(harness.own).netloc
    forwarded = {"X-Forwarded-Host": host, "Forwarded": f"host={host}"}
    await visitor.get(f"{harness.main}/{marker}", cookie, **forwarded)
    assert not visitor.has_entered(marker)
