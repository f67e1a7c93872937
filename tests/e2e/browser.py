"""Chromium, and JupyterLab in a tab of it, used as a person uses it."""

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

# In milliseconds, as Playwright wants it.
PATIENCE = DEADLINE_SECONDS * 1000

# pytest shows what is logged with a test that fails.
log = logging.getLogger(__name__)
LOGGED_CHARACTERS = 300


@asynccontextmanager
async def running_browser() -> AsyncIterator[Browser]:
    program = need_program("chromium")
    async with async_playwright() as playwright:
        # As root, which is what CI is, Chromium has no sandbox.
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


class Tab:
    """A tab, and what has happened in it."""

    def __init__(self, page: Page, person: Person) -> None:
        self.page = page
        self._url = person.url
        self._prompts = 0
        self.forget()
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("response", self._note_answer)
        page.on("websocket", self._note_socket)

    def forget(self) -> None:
        """Count anew from here."""
        self.errors: list[str] = []
        self.answers: Counter[int] = Counter()
        self.messages_sent = 0
        self.sockets_refused = 0

    async def visit(self, workspace_id: WorkspaceId) -> None:
        await self.page.goto(f"{self._url}/w/{workspace_id}/")

    async def read_headline(self) -> str:
        """Of one of CodeHub's own pages."""
        return await self.page.locator("h1:visible").inner_text()

    async def wait_for_ide(self) -> None:
        await self.page.locator(".jp-DirListing-content").wait_for()
        await self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    async def write_file(self, name: str, text: str) -> None:
        """A new one, saved with Ctrl+S."""
        await self._launch("Text File")
        await self.page.locator(".jp-FileEditor .cm-content").click()
        await self.page.keyboard.type(text)
        await self.page.keyboard.press("Control+s")
        await self.page.get_by_placeholder("File name").fill(name)
        await self.page.get_by_role("button", name="Rename and Save").click()
        await self.page.locator(".jp-Dialog").wait_for(state="hidden")

    async def expect_file(self, name: str, text: str) -> None:
        """Open it and see what is in it."""
        await self.page.locator(".jp-DirListing-itemName", has_text=name).dblclick()
        await expect(self.page.locator(".jp-FileEditor .cm-content")).to_have_text(text, timeout=PATIENCE)

    async def open_terminal(self) -> None:
        """Return when its shell has shown a prompt, which is painted and can be read on its socket only."""
        await self._launch("Terminal")
        await self.page.locator(".jp-Terminal").click()

        async def shows_prompt() -> bool:
            return self._prompts > 0

        await until(shows_prompt, "the prompt of the shell")

    async def open_notebook(self) -> None:
        """Return when its kernel waits for work."""
        await self._launch("Python 3")
        await self.page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()

    async def type(self, text: str) -> None:
        """Wherever the focus is."""
        await self.page.keyboard.type(text)

    async def _launch(self, what: str) -> None:
        await self.page.locator('[data-command="launcher:create"]').first.click()
        await self.page.locator(".jp-LauncherCard:visible", has_text=what).first.click()

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location['url']})")
            log.warning("console: %s", self.errors[-1])

    async def _note_answer(self, answer: Response) -> None:
        self.answers[answer.status] += 1
        if answer.status >= HTTPStatus.BAD_REQUEST:
            said = f"{answer.status} {answer.request.method} {answer.url}"
            # The body tells whether the front door has answered, or the IDE.
            with suppress(Error):
                said += f": {(await answer.text())[:LOGGED_CHARACTERS]}"
            log.warning(said)

    def _note_socket(self, socket: WebSocket) -> None:
        socket.on("framesent", self._note_sent)
        socket.on("framereceived", self._note_received)
        socket.on("socketerror", self._note_refused)

    def _note_sent(self, _message: bytes | str) -> None:
        self.messages_sent += 1

    def _note_refused(self, _reason: str) -> None:
        self.sockets_refused += 1

    def _note_received(self, message: bytes | str) -> None:
        self._prompts += isinstance(message, str) and message.startswith('["stdout"')


@asynccontextmanager
async def open_tab(browser: Browser, person: Person) -> AsyncIterator[Tab]:
    """In a window of its own, where the person is signed in."""
    context = await browser.new_context()
    context.set_default_timeout(PATIENCE)
    session = person.credentials.session
    await context.add_cookies([{"name": PLAIN_COOKIE, "value": session, "url": person.url}])
    try:
        yield Tab(await context.new_page(), person)
    finally:
        await context.close()


async def wait_for_file(file: Path, text: str) -> None:
    async def is_written() -> bool:
        return file.exists() and file.read_text() == text

    await until(is_written, f"{file.name} on the disk")
