"""Signing in to the dashboard: the page after it, and errors."""

import re
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.dashboard import Dashboard, add_user, open_dashboard
from tests.e2e.harness import Person

pytestmark = pytest.mark.timeout(600)

FAILURES_ALLOWED = 5
RIGHT_WAYS = ["/", "/account", "/w/0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44/lab?path=a%20b#here", "/?show=error"]
WRONG_WAYS = [
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example/",
    "/%09/evil.example/",
    "javascript:alert(1)",
    "w/none",
    "/../..//evil.example",
    "/login",
    "",
]


async def test_signing_in_leads_to_the_requested_page(browser: Browser, person: Person) -> None:
    async with open_dashboard(browser, person.url, await add_user(person)) as dashboard:
        await dashboard.page.goto("/account")
        await dashboard.page.wait_for_url("**/login?next=%2Faccount")
        await fill_in(dashboard)
        await dashboard.page.wait_for_url("**/account")
        await expect(dashboard.page.get_by_role("heading", name="Account")).to_be_visible()


async def test_signing_in_leads_only_to_paths_of_this_deployment(browser: Browser, person: Person) -> None:
    async with open_dashboard(browser, person.url, "nobody") as dashboard:
        await dashboard.page.goto("/login")
        script = dashboard.page.locator("link[rel=modulepreload][href$='/routes.js']")
        lead = f"search => import({await script.get_attribute('href')!r}).then(it => it.safeNext(search))"
        for wrong in WRONG_WAYS:
            assert await dashboard.page.evaluate(lead, f"?next={wrong}") == "/", wrong
        for right in RIGHT_WAYS:
            assert await dashboard.page.evaluate(lead, f"?next={quote(right)}") == right


async def fill_in(dashboard: Dashboard) -> None:
    await dashboard.page.get_by_label("User name").fill(dashboard.username)
    await dashboard.page.get_by_label("Password").fill("correct horse battery")
    await dashboard.page.keyboard.press("Enter")


async def test_a_locked_out_user_sees_how_long_the_lock_lasts(browser: Browser, person: Person) -> None:
    async with open_dashboard(browser, person.url, await add_user(person)) as dashboard:
        await dashboard.page.goto("/login")
        await dashboard.page.get_by_label("User name").fill(dashboard.username)
        button = dashboard.page.get_by_role("button")
        for _ in range(FAILURES_ALLOWED + 1):
            # The form sends nothing until it has handled the previous response.
            await expect(button).to_be_enabled()
            await dashboard.page.get_by_label("Password").fill("wrong")
            async with dashboard.page.expect_response("**/api/v1/login"):
                await dashboard.page.keyboard.press("Enter")
        await expect(button).to_have_text(re.compile(r"^Try again in \d+ s$"))
        await expect(button).to_be_disabled()
        await expect(dashboard.page.get_by_role("alert")).to_be_visible()
