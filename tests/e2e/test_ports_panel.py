"""The panel “Ports”: a server that is started appears, is opened, shared, and not shared any more."""

import pytest
from playwright.async_api import Browser, Page, expect

from testkit.waiting import until
from tests.e2e.browser import Tab
from tests.e2e.dashboard import add_user, open_dashboard
from tests.e2e.harness import HOUR_SECONDS, Person

pytestmark = pytest.mark.timeout(600)

PORT = 8123
# On loopback only, as development servers do.
SERVER = f"echo from inside > index.html; python3 -m http.server --bind 127.0.0.1 {PORT} &\n"


async def test_a_server_appears_is_shared_and_is_not_shared_any_more(
    person: Person, browser: Browser, tab: Tab
) -> None:
    username = await add_user(person)
    async with (
        person.workspace(standby_ttl_seconds=HOUR_SECONDS) as workspace_id,
        open_dashboard(browser, person.url, username) as other,
    ):
        await tab.visit(workspace_id)
        await tab.wait_for_ide()
        page = await tab.page.context.new_page()
        await page.goto(f"{person.url}/workspaces/{workspace_id}")
        panel = page.get_by_role("region", name="Ports")
        await expect(panel).to_contain_text("No program is listening on a port.")
        await tab.page.bring_to_front()
        await tab.open_terminal()
        await tab.type(SERVER)
        await page.bring_to_front()
        await expect(panel).to_contain_text(f"{PORT} python3")
        await expect(panel).to_contain_text("Open to its owner only.")
        async with page.expect_popup() as opening:
            await panel.get_by_role("link", name=f"Open port {PORT}").click()
        opened = await opening.value
        await expect(opened.locator("body")).to_have_text("from inside\n")
        link = opened.url
        assert f"//{PORT}--{workspace_id}." in link

        await other.sign_in()
        await other.page.locator("#create").wait_for()
        assert "from inside" not in await visit(other.page, link)
        await page.bring_to_front()
        await panel.get_by_role("button", name=f"Share port {PORT}").click()
        await page.get_by_label("With").select_option("users")
        await page.get_by_label("For", exact=True).select_option("1 h")
        await page.get_by_role("button", name="Share", exact=True).click()
        await expect(panel).to_contain_text("Open to users who are signed in")

        async def is_open(*, wanted: bool) -> bool:
            return ("from inside" in await visit(other.page, link)) == wanted

        await until(lambda: is_open(wanted=True), "the other user opens the port")
        await panel.get_by_role("button", name=f"Stop sharing port {PORT}").click()
        await expect(panel).to_contain_text("Open to its owner only.")
        await until(lambda: is_open(wanted=False), "the other user cannot open it any more")
        assert tab.errors == []


async def visit(page: Page, url: str) -> str:
    await page.goto(url)
    return await page.locator("body").inner_text()
