"""Drive Chromium, and JupyterLab in one of its tabs."""

import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path

from playwright.async_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Response,
    WebSocket,
    async_playwright,
    expect,
)

from codehub.domain.conditions import WorkspaceId
from codehub.origins import PLAIN_COOKIE
from testkit.needs import need_program
from testkit.waiting import DEADLINE_SECONDS, until
from tests.e2e.harness import Person

# In milliseconds, for Playwright.
PATIENCE = DEADLINE_SECONDS * 1000
# Its default of five seconds is too short for a machine that runs all tests at once.
expect.set_options(timeout=PATIENCE)

# pytest shows the log of a test that fails.
log = logging.getLogger(__name__)
LOGGED_CHARACTERS = 300


@asynccontextmanager
async def running_browser(*options: str, program: Path | None = None) -> AsyncIterator[Browser]:
    """Run Chromium, or the program in its place."""
    executable = program or need_program("chromium")
    async with async_playwright() as playwright:
        # Chromium has no sandbox for root, and CI runs as root.
        browser = await playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", *options]
        )
        try:
            yield browser
        finally:
            await browser.close()


class Tab:
    """A tab that records errors, responses and WebSocket messages."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self._url = url
        self._prompts = 0
        self.reset_counts()
        page.on("console", self._record_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("response", self._record_response)
        page.on("websocket", self._watch_socket)

    def reset_counts(self) -> None:
        self.errors: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.messages_sent = 0
        self.sockets_refused = 0

    async def visit(self, workspace_id: WorkspaceId) -> None:
        await self.page.goto(f"{self._url}/w/{workspace_id}/")

    async def read_headline(self) -> str:
        """Return the headline of a page of CodeHub's own."""
        return await self.page.locator("h1:visible").inner_text()

    async def wait_for_ide(self) -> None:
        await self.page.locator(".jp-DirListing-content").wait_for()
        await self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    async def write_file(self, name: str, text: str) -> None:
        """Write a new file and save it with Ctrl+S."""
        await self._launch("Text File")
        await self.page.locator(".jp-FileEditor .cm-content").click()
        await self.page.keyboard.type(text)
        await self.page.keyboard.press("Control+s")
        await self.page.get_by_placeholder("File name").fill(name)
        await self.page.get_by_role("button", name="Rename and Save").click()
        await self.page.locator(".jp-Dialog").wait_for(state="hidden")

    async def expect_file(self, name: str, text: str) -> None:
        """Open a file and check its text."""
        await self.page.locator(".jp-DirListing-itemName", has_text=name).dblclick()
        await expect(self.page.locator(".jp-FileEditor .cm-content")).to_have_text(text, timeout=PATIENCE)

    async def open_terminal(self) -> None:
        """Open a terminal and wait for its prompt, whose text only the WebSocket has."""
        await self._launch("Terminal")
        await self.page.locator(".jp-Terminal").click()

        async def shows_prompt() -> bool:
            return self._prompts > 0

        await until(shows_prompt, "the prompt of the shell")

    async def open_notebook(self) -> None:
        """Open a notebook and wait until its kernel is idle."""
        await self._launch("Python 3")
        await self.page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()

    async def type(self, text: str) -> None:
        """Type into the element that has the focus."""
        await self.page.keyboard.type(text)

    async def _launch(self, what: str) -> None:
        await self.page.locator('[data-command="launcher:create"]').first.click()
        await self.page.locator(".jp-LauncherCard:visible", has_text=what).first.click()

    def _record_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location['url']})")
            log.warning("console: %s", self.errors[-1])

    async def _record_response(self, response: Response) -> None:
        self.statuses[response.status] += 1
        if response.status >= HTTPStatus.BAD_REQUEST:
            line = f"{response.status} {response.request.method} {response.url}"
            # The body shows whether the proxy or the IDE has responded.
            with suppress(Error):
                line += f": {(await response.text())[:LOGGED_CHARACTERS]}"
            log.warning(line)

    def _watch_socket(self, socket: WebSocket) -> None:
        socket.on("framesent", self._record_sent)
        socket.on("framereceived", self._record_received)
        socket.on("socketerror", self._record_refused)

    def _record_sent(self, _message: bytes | str) -> None:
        self.messages_sent += 1

    def _record_refused(self, _reason: str) -> None:
        self.sockets_refused += 1

    def _record_received(self, message: bytes | str) -> None:
        self._prompts += isinstance(message, str) and message.startswith('["stdout"')


@asynccontextmanager
async def open_tab(browser: Browser, person: Person) -> AsyncIterator[Tab]:
    """Open a tab in a new browser context, with the session of the person."""
    context = await browser.new_context()
    context.set_default_timeout(PATIENCE)
    session = person.credentials.session
    await context.add_cookies([{"name": PLAIN_COOKIE, "value": session, "url": person.url}])
    try:
        yield Tab(await context.new_page(), person.url)
    finally:
        await context.close()


async def wait_for_file(file: Path, text: str) -> None:
    async def is_written() -> bool:
        return file.exists() and file.read_text() == text

    await until(is_written, f"{file.name} on the disk")
