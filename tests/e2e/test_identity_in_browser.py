"""Signing in through an identity provider and with a second factor, and the warning about no sandbox."""

from collections.abc import AsyncIterator

import pyotp
import pytest
from playwright.async_api import Browser, expect

from testkit.oidc.server import OidcServer
from testkit.processes import free_port
from tests.api.harness import ApiHarness
from tests.api.module_fixtures import shared_environment, shared_harness
from tests.api.process import ApiProcess, running_api
from tests.api.single_sign_on import ALLOWED_GROUP, environment_with, oidc_server
from tests.e2e.dashboard import Dashboard, open_dashboard

__all__ = ["oidc_server", "shared_environment", "shared_harness"]

pytestmark = pytest.mark.timeout(600)


def at(port: int, environment: dict[str, str]) -> dict[str, str]:
    """Return the settings of an API whose main origin is its own address: a browser signs in only there."""
    return environment | {"CODEHUB_PUBLIC_BASE_URL": f"http://127.0.0.1:{port}"}


@pytest.fixture(scope="module")
async def served(shared_environment: dict[str, str], oidc_server: OidcServer) -> AsyncIterator[ApiProcess]:
    port = free_port()
    environment = environment_with(at(port, shared_environment), oidc_server)
    async with running_api(environment, port=port) as running:
        yield running


@pytest.fixture
async def dashboard(
    browser: Browser, served: ApiProcess, shared_harness: ApiHarness
) -> AsyncIterator[Dashboard]:
    person = await shared_harness.person()
    async with open_dashboard(browser, served.base_url, person.username) as opened:
        yield opened


async def test_the_provider_leads_back_to_the_requested_page(
    dashboard: Dashboard, oidc_server: OidcServer
) -> None:
    page = dashboard.page
    oidc_server.set_person("subject-grace", preferred_username="grace", groups=[ALLOWED_GROUP])
    await page.goto("/account")
    await page.get_by_role("button", name="Sign in with Example").click()
    await page.wait_for_url(f"{oidc_server.issuer}/**")
    await page.locator("input[name=sub]").fill("subject-grace")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/account")
    await expect(page.locator(".who")).to_have_text("grace")
    # The provider has the password, so there is none to change or to protect here.
    await expect(page.get_by_role("region", name="Second factor")).to_be_hidden()


async def test_somebody_in_no_allowed_group_reads_why(dashboard: Dashboard, oidc_server: OidcServer) -> None:
    page = dashboard.page
    oidc_server.set_person("subject-eve", preferred_username="eve", groups=["visitors"])
    await page.goto("/login")
    await page.get_by_role("button", name="Sign in with Example").click()
    await page.locator("input[name=sub]").fill("subject-eve")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("You are not in a group that may use CodeHub.")


async def test_an_authenticator_app_is_added_and_then_asked_for(dashboard: Dashboard) -> None:
    page = dashboard.page
    await dashboard.sign_in("/login?next=/account")
    panel = page.get_by_role("region", name="Second factor")
    await panel.get_by_role("button", name="Add an authenticator app").click()
    await expect(panel.get_by_role("img", name="QR code for your authenticator app")).to_be_visible()
    secret = await panel.get_by_label("The secret").input_value()
    await panel.get_by_label("Code", exact=True).fill(pyotp.TOTP(secret).now())
    await panel.get_by_role("button", name="Turn on").click()
    codes = (await panel.locator(".recovery-codes").inner_text()).split()
    await panel.get_by_role("button", name="I have saved them").click()
    await expect(panel).to_contain_text(f"{len(codes)} recovery codes are left.")
    await page.locator("#navigation").get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/login**")
    await dashboard.sign_in()
    # The code of this half minute is used up; a recovery code signs in as well.
    await page.get_by_label("Code", exact=True).fill(codes[0])
    await page.keyboard.press("Enter")
    await expect(page.locator(".who")).to_have_text(dashboard.username)


async def test_every_page_says_that_there_is_no_sandbox(
    browser: Browser, shared_environment: dict[str, str], dashboard: Dashboard
) -> None:
    unsafe = {"CODEHUB_LOCAL_UNSAFE_NO_SANDBOX": "true", "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local"}
    port = free_port()
    async with (
        running_api(at(port, shared_environment) | unsafe, port=port) as running,
        open_dashboard(browser, running.base_url, dashboard.username) as opened,
    ):
        await opened.sign_in()
        await opened.page.locator("#create").wait_for()
        for path in ("/", "/account"):
            await opened.page.goto(path)
            await expect(opened.page.get_by_role("alert")).to_contain_text("Workspaces run without a sandbox")
    await dashboard.sign_in()
    await expect(dashboard.page.locator("#create")).to_be_visible()
    await expect(dashboard.page.get_by_text("Workspaces run without a sandbox")).to_be_hidden()
