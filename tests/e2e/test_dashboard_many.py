"""A thousand workspaces on one page. No worker runs, so only the tests change anything."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, expect

from testkit.processes import free_port
from testkit.rows import add_workspace
from tests.api.event_harness import relaying
from tests.api.harness import ApiHarness, Person
from tests.api.module_fixtures import shared_environment, shared_harness
from tests.api.process import ApiProcess, running_api
from tests.e2e.browser import PATIENCE
from tests.e2e.dashboard import Dashboard, open_dashboard

__all__ = ["shared_environment", "shared_harness"]

MANY = 1_000
# The rows in which anything was added, removed or changed.
WATCH = """list => {
  window.touched = new Set();
  const rowOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement).closest(".row");
  new MutationObserver((records) => {
    for (const { target } of records) touched.add(rowOf(target)?.dataset.id ?? "list");
  }).observe(list, { subtree: true, childList: true, characterData: true, attributes: true });
}"""


@pytest.fixture(scope="module")
async def served(shared_environment: dict[str, str]) -> AsyncIterator[ApiProcess]:
    """An API whose main origin is its own address: a browser signs in only there."""
    port = free_port()
    public = {"CODEHUB_PUBLIC_BASE_URL": f"http://127.0.0.1:{port}"}
    async with running_api(shared_environment | public, port=port) as running:
        yield running


@pytest.fixture
async def owner(shared_harness: ApiHarness) -> Person:
    person = await shared_harness.person()
    async with shared_harness.context.database.transaction() as session:
        for number in range(MANY):
            at_rest = {"phase": "ARCHIVED", "desired_state": "ARCHIVED", "archive_key": "some/archive"}
            await add_workspace(session, person.user_id, name=f"workspace-{number}", **at_rest)
    return person


@pytest.fixture
async def dashboard(browser: Browser, served: ApiProcess, owner: Person) -> AsyncIterator[Dashboard]:
    async with open_dashboard(browser, served.base_url, owner.username) as opened:
        await opened.sign_in("/login?next=/%3Fsort=name")
        await opened.row(f"workspace-{MANY - 1}").wait_for()
        yield opened


async def test_a_change_of_one_workspace_touches_only_its_row(
    dashboard: Dashboard, shared_harness: ApiHarness, owner: Person
) -> None:
    assert await dashboard.page.locator(".row").count() == MANY
    assert await dashboard.page.locator("a.name").nth(10).inner_text() == "workspace-10"
    await dashboard.page.locator(".rows").evaluate(WATCH)
    changed = await dashboard.row("workspace-500").get_attribute("data-id")
    async with relaying(shared_harness):
        form = {"description": "The one that changed"}
        answer = await owner.client.patch(f"{owner.workspaces}/{changed}", json=form)
        assert answer.status_code == 200, answer.text
        description = dashboard.row("workspace-500").locator(".description")
        await expect(description).to_have_text("The one that changed", timeout=PATIENCE)
    assert await dashboard.page.evaluate("[...touched]") == [changed]
    assert dashboard.errors == []


async def test_a_search_is_kept_in_the_address(dashboard: Dashboard) -> None:
    page = dashboard.page
    await page.get_by_label("Search workspaces").fill("SPACE-99")
    await expect(page.locator(".row")).to_have_count(11)
    await page.reload()
    await expect(page.locator(".row")).to_have_count(11)
    await page.get_by_label("Search workspaces").fill("nothing like it")
    await expect(page.get_by_text("No workspace matches.")).to_be_visible()
    await page.get_by_label("Search workspaces").fill("")
    await expect(page.locator(".row")).to_have_count(MANY)
