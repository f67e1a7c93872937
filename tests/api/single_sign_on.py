"""An API with a real identity provider, and browsers that sign in through it."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx
import pytest

from api.security.access import API, CALLBACK
from api.security.csrf import CSRF_HEADER
from codehub.settings import load_settings
from testkit.oidc.server import OidcServer, running_provider
from tests.api.harness import ApiHarness, open_harness

BEGIN = f"{API}/oidc/sign-in"
SESSION = f"{API}/session"
ADMIN_GROUP, ALLOWED_GROUP = "codehub-admins", "engineers"


@dataclass(frozen=True)
class SingleSignOnHarness:
    """An API whose people sign in through a provider."""

    api: ApiHarness
    provider: OidcServer

    def new_subject(self, **claims: object) -> str:
        """Create a person at the provider; by default in the group that may sign in."""
        subject = f"subject-{uuid4().hex[:12]}"
        name = f"ada-{uuid4().hex[:8]}"
        person = {"preferred_username": name, "groups": [ALLOWED_GROUP], **claims}
        self.provider.set_person(subject, **person)
        return subject

    async def begin(self, browser: httpx.AsyncClient, next_path: str = "/", *, fresh: bool = False) -> str:
        """Return the provider's page that the sign-in page would open."""
        response = await browser.post(BEGIN, json={"next": next_path, "fresh": fresh})
        assert response.status_code == 200, response.text
        url: str = response.json()["url"]
        return url

    async def callback(self, browser: httpx.AsyncClient, subject: str, next_path: str = "/") -> str:
        """Sign in at the provider; return where it sends the browser."""
        return self.provider.authenticate(await self.begin(browser, next_path), subject)

    async def sign_in(self, browser: httpx.AsyncClient, subject: str) -> dict[str, Any]:
        """Sign in through the provider; return the session."""
        landing = parameters_of(await browser.get(await self.callback(browser, subject)))
        assert landing.get("signed_in") == "yes", landing
        session: dict[str, Any] = (await browser.get(SESSION)).json()
        browser.headers[CSRF_HEADER] = session["csrf_token"]
        return session

    async def refused(self, browser: httpx.AsyncClient, url: str) -> str:
        """Open a callback that must not sign in; return the problem that the sign-in page shows."""
        landing = parameters_of(await browser.get(url))
        assert "signed_in" not in landing
        assert (await browser.get(SESSION)).status_code == 401
        return landing["problem"]


def parameters_of(response: httpx.Response) -> dict[str, str]:
    """Return the parameters of the sign-in page that the response redirects to."""
    assert response.status_code == 303, response.text
    parts = urlsplit(response.headers["location"])
    assert parts.path == "/login", parts
    return {name: values[0] for name, values in parse_qs(parts.query).items()}


@pytest.fixture(scope="session")
def oidc_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcServer]:
    with running_provider(tmp_path_factory.mktemp("oidc")) as server:
        yield server


def environment_with(environment: dict[str, str], server: OidcServer, **more: str) -> dict[str, str]:
    """Return the settings of an API that is registered at the provider."""
    client = server.register(load_settings(environment).public_base_url + CALLBACK)
    return {
        **environment,
        "CODEHUB_OIDC_ISSUER": server.issuer,
        "CODEHUB_OIDC_CLIENT_ID": client.client_id,
        "CODEHUB_OIDC_CLIENT_SECRET": client.client_secret,
        "CODEHUB_OIDC_NAME": "Example",
        "CODEHUB_OIDC_ADMIN_GROUPS": ADMIN_GROUP,
        "CODEHUB_OIDC_ALLOWED_GROUPS": f"{ALLOWED_GROUP}, others",
        **more,
    }


@pytest.fixture(scope="module")
async def sso(
    shared_environment: dict[str, str], oidc_server: OidcServer
) -> AsyncIterator[SingleSignOnHarness]:
    async with open_harness(environment_with(shared_environment, oidc_server)) as opened:
        yield SingleSignOnHarness(opened.with_cheap_passwords(), oidc_server)


@pytest.fixture(autouse=True)
def truth(oidc_server: OidcServer) -> Iterator[None]:
    """Make the provider tell the truth again after each test."""
    yield
    oidc_server.lie()
