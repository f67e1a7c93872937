"""The dashboard is accessible: with a keyboard, on a phone, with a screen reader."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from testkit.deployment import Deployment
from testkit.needs import need_program
from tests.e2e.browser import PATIENCE
from tests.e2e.dashboard import PHONE, Scheme, add_user, open_dashboard
from tests.e2e.harness import Person

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
SERIOUS = {"serious", "critical"}


@pytest.fixture(scope="module")
def axe() -> str:
    """Return the script that finds what keeps people with disabilities out."""
    need_program("npm")
    make = shutil.which("make") or "make"
    subprocess.run((make, "--silent", "node_modules/.synced"), cwd=ROOT, check=True, timeout=300)
    return (ROOT / "node_modules" / "axe-core" / "axe.min.js").read_text()


async def violations(page: Page, axe: str) -> list[str]:
    await page.evaluate(axe)
    found: dict[str, Any] = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{page.url} {each['id']}: {node['html']}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_serious_problem_on_any_page(
    scheme: Scheme, browser: Browser, person: Person, deployment: Deployment, axe: str
) -> None:
    username = await add_user(person, "admin")
    async with open_dashboard(browser, person.url, username, scheme=scheme) as dashboard:
        page = dashboard.page
        await page.goto("/login")
        await page.get_by_label("Password").wait_for()
        found = await violations(page, axe)
        await dashboard.sign_in()
        workspace_id = await dashboard.create("notes", start=False)
        await dashboard.expect_badge("notes", "Stopped")
        found += await violations(page, axe)
        await page.locator("#create").click()
        found += await violations(page, axe)
        for path, sign in (
            (f"/workspaces/{workspace_id}", ".timeline li"),
            ("/account", ".plain-list li"),
            ("/admin", ".tiles dd"),
            ("/admin/audit", "tbody tr"),
            ("/admin/egress", "tbody tr"),
            ("/nothing-here", "h1"),
        ):
            await page.goto(path)
            await page.locator(sign).first.wait_for()
            found += await violations(page, axe)
        shutil.rmtree(deployment.home(workspace_id))
        await page.goto(f"/workspaces/{workspace_id}")
        await page.locator(".choice").first.wait_for()
        found += await violations(page, axe)
    assert found == []


async def test_everything_can_be_done_with_the_keyboard(browser: Browser, person: Person) -> None:
    async with open_dashboard(browser, person.url, await add_user(person)) as dashboard:
        page, keyboard = dashboard.page, dashboard.page.keyboard
        await page.goto("/login")
        await expect(page.get_by_label("User name")).to_be_focused()
        await keyboard.type(dashboard.username)
        await keyboard.press("Tab")
        await keyboard.type("correct horse battery")
        await keyboard.press("Enter")
        await page.get_by_role("heading", name="Create your first workspace").wait_for()
        await tab_to(page, "New workspace")
        await keyboard.press("Enter")
        await keyboard.type("by-keyboard")
        await tab_to(page, "yes")
        await keyboard.press("Space")
        await keyboard.press("Enter")
        await dashboard.expect_badge("by-keyboard", "Stopped")
        await expect(dashboard.row("by-keyboard").locator("a.name")).to_be_focused()
        await tab_to(page, "More for by-keyboard")
        await keyboard.press("Enter")
        await expect(page.get_by_role("menuitem", name="Archive")).to_be_focused()
        await keyboard.press("Escape")
        await expect(page.get_by_role("button", name="More for by-keyboard")).to_be_focused()
        await keyboard.press("Enter")
        await keyboard.press("ArrowDown")
        await keyboard.press("Enter")
        await keyboard.type("by-keyboard")
        await keyboard.press("Enter")
        await expect(dashboard.row("by-keyboard")).to_have_count(0, timeout=PATIENCE)
        assert dashboard.errors == []


async def tab_to(page: Page, label: str) -> None:
    """Press Tab until the element with this label has the focus."""
    named = "each => each.ariaLabel ?? (each.value || each.innerText)"
    for _ in range(40):
        if (await page.locator(":focus, body:not(:has(:focus))").evaluate(named)).strip() == label:
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"no way to {label!r} with Tab")


async def test_every_page_fits_on_a_phone(browser: Browser, person: Person) -> None:
    username = await add_user(person, "admin")
    async with open_dashboard(browser, person.url, username, viewport=PHONE) as dashboard:
        await dashboard.sign_in()
        workspace_id = await dashboard.create(
            "a-very-long-name-" + "of-a-workspace-" * 4 + "end", start=False
        )
        for path, sign in (
            ("/", ".row"),
            (f"/workspaces/{workspace_id}", ".timeline li"),
            ("/account", ".plain-list li"),
            ("/admin", ".tiles dd"),
            ("/admin/audit", "tbody tr"),
            ("/admin/egress", "tbody tr"),
        ):
            await dashboard.page.goto(path)
            await dashboard.page.locator(sign).first.wait_for()
            assert await dashboard.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        assert dashboard.errors == []


async def test_notes_are_text_and_never_markup(browser: Browser, person: Person) -> None:
    async with open_dashboard(browser, person.url, await add_user(person)) as dashboard:
        await dashboard.sign_in()
        workspace_id = await dashboard.create("notes", start=False)
        page = dashboard.page
        await page.goto(f"/workspaces/{workspace_id}")
        await page.get_by_role("button", name="Edit").click()
        hostile = "<img src=x onerror=alert(1)>\n\n[click](javascript:alert(1)) **bold** [safe](https://example.org/)"
        await page.get_by_role("textbox", name="Notes").fill(hostile)
        await (
            page.locator("form", has=page.get_by_role("textbox", name="Notes"))
            .get_by_role("button", name="Save")
            .click()
        )
        memo = page.locator(".markdown")
        await expect(memo.locator("strong")).to_have_text("bold")
        assert await memo.locator("img").count() == 0
        assert await memo.locator("a").evaluate_all("links => links.map((each) => each.href)") == [
            "https://example.org/"
        ]
        await expect(memo).to_contain_text("<img src=x onerror=alert(1)>")
        assert dashboard.errors == []


def test_no_script_makes_markup_out_of_text() -> None:
    assets = ROOT / "api" / "dashboard" / "assets"
    scripts = {path.name: path.read_text() for path in assets.rglob("*.js")}
    forbidden = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "DOMParser")
    assert [(name, word) for name, text in scripts.items() for word in forbidden if word in text] == []
