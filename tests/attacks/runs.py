"""Run an attempt in Chromium, and find out whether it has reached its goal."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from playwright.async_api import Browser, BrowserContext, Error, Page, Request

from codehub.origins import PLAIN_COOKIE
from testkit.waiting import until
from tests.attacks.attempts import Attempt, Goal
from tests.attacks.harness import OTHER_PORT, PORT, Harness
from tests.attacks.targets import AttackTarget, CodeHubTarget

log = logging.getLogger(__name__)
PRELUDE = Path(__file__).with_name("attempts").joinpath("prelude.js").read_text()
SIGN_IN = """async (form) => (await fetch('/api/v1/login', {
  method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(form)
})).status"""
# A page of the main origin that shows who is signed in, as the dashboard asks.
WHO_IS_IT = "async () => (await fetch('/api/v1/session')).text()"
# An attempt that still waits after this long has failed: the page was refused.
ATTEMPT_MILLISECONDS = 5_000
# The page about too many cookies removes some and asks to try again.
TOO_MANY_COOKIES = 431
TRIES = 10


class Traffic:
    """The requests of a browser context that have no response yet: beacons and forms outlive their script."""

    def __init__(self, context: BrowserContext) -> None:
        self._pending: set[Request] = set()
        context.on("request", self._begin)
        context.on("requestfailed", self._end)
        context.on("response", lambda response: self._end(response.request))

    def _begin(self, request: Request) -> None:
        # Playwright does not see the end of a worker's own script.
        if not request.url.startswith("blob:"):
            self._pending.add(request)

    def _end(self, request: Request) -> None:
        self._pending.discard(request)

    async def settle(self) -> None:
        async def is_quiet() -> bool:
            return not self._pending

        await until(is_quiet, "all requests have ended")


@dataclass
class Run:
    """One attempt that was made."""

    target: AttackTarget
    page: Page
    marker: str
    session: str
    result: str

    async def has_reached(self, goal: Goal) -> bool:
        match goal:
            case Goal.READ_ACCOUNT:
                reached = self.target.account in self.result
            case Goal.READ_NEIGHBOR:
                reached = self.target.secret in self.result
            case Goal.CHANGE:
                reached = await self.target.was_changed(self.marker)
            case Goal.ENTER_NEIGHBOR:
                reached = self.target.was_entered(self.marker)
            case Goal.LEAK:
                reached = self.target.has_leaked(self.marker, self.session)
            case Goal.SIGN_OUT:
                reached = self.target.account not in await self._who_is_signed_in()
            case Goal.SIGN_IN_MALLORY:
                reached = f'"{self.target.mallory}"' in await self._who_is_signed_in()
        return reached

    async def _who_is_signed_in(self) -> str:
        """Return the session document as the dashboard reads it, or the error as text."""
        try:
            for _ in range(TRIES):
                opened = await self.page.goto(f"{self.target.main}/healthz")
                if opened is None or opened.status != TOO_MANY_COOKIES:
                    break
            return str(await self.page.evaluate(WHO_IS_IT))
        except Error as error:
            return str(error)


@asynccontextmanager
async def signed_in_page(browser: Browser, target: AttackTarget) -> AsyncIterator[Page]:
    # For the controls, scripts also run on CodeHub's pages, whose policy would stop them.
    context = await browser.new_context(bypass_csp=True)
    try:
        page = await context.new_page()
        await page.goto(f"{target.main}/healthz")
        assert await page.evaluate(SIGN_IN, target.credentials) == 200
        yield page
    finally:
        await context.close()


async def open_ports(browser: Browser, harness: Harness) -> None:
    """Visit the hostile workspace, which then listens on its ports, and wait until it does."""
    async with signed_in_page(browser, CodeHubTarget(harness)) as page:
        await page.goto(harness.own)

        async def opens() -> bool:
            responses = [await page.goto(harness.port_url(port)) for port in (PORT, OTHER_PORT)]
            return all(each is not None and each.ok for each in responses)

        await until(opens, "the ports respond")


async def make(browser: Browser, target: AttackTarget, attempt: Attempt) -> bool:
    """Run an attempt's script on the target's page; return whether it reached its goal."""
    marker = f"attempt-{uuid4().hex}"
    async with signed_in_page(browser, target) as page:
        [session] = [each["value"] for each in await page.context.cookies() if each["name"] == PLAIN_COOKIE]
        traffic = Traffic(page.context)
        arguments = target.script_arguments(marker)
        # The user has the other workspace open too, so the browser has its cookie.
        await page.goto(arguments["neighbor"])
        await page.goto(target.page)
        assert page.url == target.page
        result = await _evaluate(page, attempt.script, arguments)
        await traffic.settle()
        reached = await Run(target, page, marker, session, result).has_reached(attempt.goal)
    log.info("%s: %s (%s)", attempt.name, reached, result[:300])
    return reached


async def _evaluate(page: Page, script: str, arguments: dict[str, object]) -> str:
    """Run a script and return its result, or the error as text."""
    function = f"""async (t) => {{
      {PRELUDE}
      const run = async () => {{ {script} }};
      const late = new Promise((resolve) => setTimeout(resolve, {ATTEMPT_MILLISECONDS}, 'late'));
      return Promise.race([run().catch(String), late]).then(JSON.stringify);
    }}"""
    with suppress(Error):
        return json.dumps(await page.evaluate(function, arguments))
    return "the page is gone"
