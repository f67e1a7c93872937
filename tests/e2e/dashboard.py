"""Drive the dashboard in a browser."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal
from uuid import uuid4

from playwright.async_api import Browser, ConsoleMessage, Locator, Page, ViewportSize, expect

from codehub.domain.conditions import WorkspaceId
from tests.e2e.browser import PATIENCE
from tests.e2e.harness import Person

PASSWORD = "correct horse battery"  # noqa: S105 (of people who exist for one test)
DESKTOP = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=360, height=740)
Scheme = Literal["light", "dark"]


class Dashboard:
    """The dashboard in one window; it records the errors of the console."""

    def __init__(self, page: Page, username: str) -> None:
        self.page = page
        self.username = username
        self.errors: list[str] = []
        page.on("console", self._record_error)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    async def sign_in(self, path: str = "/login", password: str = PASSWORD) -> None:
        await self.page.goto(path)
        await self.page.get_by_label("User name").fill(self.username)
        await self.page.get_by_label("Password").fill(password)
        await self.page.get_by_role("button", name="Sign in", exact=True).click()

    async def create(self, name: str, *, start: bool = True) -> WorkspaceId:
        """Create a workspace with idle times that are longer than any test."""
        await self.page.locator("#create").click()
        await self.page.get_by_label("Name", exact=True).fill(name)
        await self.page.get_by_text("When nobody uses it").click()
        await self.page.get_by_label("Stop it after").select_option("1 day")
        await self.page.get_by_label("Then archive it after").select_option("7 days")
        await self.page.get_by_label("Start it now").set_checked(start)
        await self.page.get_by_role("button", name="Create", exact=True).click()
        await self.row(name).wait_for()
        return WorkspaceId(await self.row(name).get_attribute("data-id") or "")

    def row(self, name: str) -> Locator:
        link = self.page.locator("a.name").get_by_text(name, exact=True)
        return self.page.locator(".row").filter(has=link)

    async def expect_badge(self, name: str, label: str) -> None:
        await expect(self.row(name).locator(".badge")).to_have_text(label, timeout=PATIENCE)

    async def press(self, name: str, label: str) -> None:
        """Press a button in the row of a workspace."""
        await self.row(name).get_by_text(label, exact=True).click()

    async def choose(self, name: str, label: str) -> None:
        """Choose an entry from the menu of a workspace."""
        await self.row(name).get_by_role("button", name=f"More for {name}").click()
        await self.page.get_by_role("menuitem", name=label).click()

    async def delete(self, name: str) -> None:
        await self.choose(name, "Delete…")
        await self.page.get_by_label(f"Type “{name}” to confirm").fill(name)
        await self.page.get_by_role("button", name="Delete", exact=True).click()

    def _record_error(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(f"{message.text} ({message.location['url']})")


async def add_user(person: Person, role: str = "user") -> str:
    """Add a user and return the name; `person` is an administrator."""
    username = f"user-{uuid4().hex[:8]}"
    form = {"username": username, "password": PASSWORD, "role": role}
    answer = await person.client.post("/api/v1/admin/users", json=form)
    assert answer.status_code == 201, answer.text
    return username


@asynccontextmanager
async def open_dashboard(
    browser: Browser,
    url: str,
    username: str,
    *,
    viewport: ViewportSize = DESKTOP,
    scheme: Scheme = "light",
) -> AsyncIterator[Dashboard]:
    """Open the dashboard in a new browser context, without a session."""
    # Without animations: an element that fades in has too little contrast for axe.
    context = await browser.new_context(
        base_url=url, viewport=viewport, color_scheme=scheme, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE)
    try:
        yield Dashboard(await context.new_page(), username)
    finally:
        await context.close()
