"""code-server in a browser tab, used as a person uses it."""

import re
from collections.abc import Awaitable

from playwright.async_api import Error, Request, expect
from playwright.async_api import TimeoutError as NotInTime

from codehub.domain.conditions import WorkspaceId
from testkit.waiting import until
from tests.e2e.browser import PATIENCE, Tab

# Chromium's error for a request that waits for a connection while a network interface of this machine
# appears or disappears, as with every container.
NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED"
WORKBENCH = ".monaco-workbench"
FILES = f"{WORKBENCH} .explorer-folders-view .monaco-list"
EDITOR = ".editor-instance .monaco-editor"
PICKER = ".quick-input-widget:visible input"
PROPOSAL = re.compile(r"/home/coder/.+")
QUESTIONS = (".monaco-dialog-box", ".notification-toast", ".part.auxiliarybar", ".gettingStartedContainer")
# In milliseconds.
KEY_PATIENCE = 5000


class CodeServer:
    """A tab that shows a workspace."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._page = tab.page
        self._interrupted = False
        tab.page.on("requestfailed", self._note_failure)

    async def visit(self, workspace_id: WorkspaceId) -> None:
        """Open the page, and retry if a network change interrupted it."""
        await until(lambda: is_done(self._tab.visit(workspace_id)), "an answer in the tab")

    async def wait_until_open(self) -> None:
        """Reload the page if a network change left parts of it missing."""

        async def is_open() -> bool:
            if await self._page.locator(FILES).is_visible():
                return True
            if self._interrupted:
                self._interrupted = False
                await is_done(self._page.reload())
            return False

        await until(is_open, "code-server in the tab")

    async def expect_no_questions(self) -> None:
        """Assert that nothing asks the person to sign in, to trust or to try an assistant."""
        for question in QUESTIONS:
            await expect(self._page.locator(question).locator("visible=true")).to_have_count(0)
        for words in ("Sign in", "Copilot", "Do you trust"):
            await expect(self._page.get_by_text(words).locator("visible=true")).to_have_count(0)

    async def write_file(self, name: str, text: str) -> None:
        """Create a file in the home and save it with Ctrl+S."""
        await self._press("Control+Alt+n", f"{EDITOR}.focused")
        await self._page.keyboard.type(text)
        await self._page.keyboard.press("Control+s")
        # It proposes a name a moment after it appears, and overwrites what was typed.
        await expect(self._page.locator(PICKER)).to_have_value(PROPOSAL, timeout=PATIENCE)
        await self._page.locator(PICKER).fill(f"/home/coder/{name}")
        await self._page.keyboard.press("Enter")
        await self._page.locator(".tab.active:not(.dirty)", has_text=name).wait_for()

    async def expect_file(self, name: str, text: str) -> None:
        """Open the file from the explorer and check its content."""
        await self._page.locator(FILES).get_by_text(name, exact=True).dblclick()
        await expect(self._page.locator(f"{EDITOR} .view-lines")).to_have_text(text, timeout=PATIENCE)

    async def open_terminal(self) -> None:
        """Open a terminal, which takes input even before its shell does."""
        await self._press("Control+`", ".terminal.xterm.focus")

    async def type(self, text: str) -> None:
        """Type regardless of the focus."""
        await self._page.keyboard.type(text)

    async def _press(self, key: str, effect: str) -> None:
        """Press keys until they have an effect: right after the editor appears, some do nothing."""

        async def has_effect() -> bool:
            await self._page.keyboard.press(key)
            try:
                await self._page.locator(effect).wait_for(timeout=KEY_PATIENCE)
            except NotInTime:
                return False
            return True

        await until(has_effect, f"what {key} does")

    def _note_failure(self, request: Request) -> None:
        # CodeHub's waiting page reconnects by itself.
        own = request.url.endswith("/.codehub/progress")
        self._interrupted |= request.failure == NETWORK_CHANGED and not own


async def is_done(asked: Awaitable[object]) -> bool:
    """Return whether the browser navigated; a network change can prevent it."""
    try:
        await asked
    except Error as error:
        if NETWORK_CHANGED not in error.message:
            raise
        return False
    return True
