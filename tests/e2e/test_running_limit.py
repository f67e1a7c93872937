"""The running limit: a person stops one workspace to open another, and code in a workspace cannot."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from codehub.domain.conditions import WorkspaceId
from proxy.forms import form_token_of
from testkit.waiting import until
from tests.e2e.browser import Tab
from tests.e2e.harness import HOUR_SECONDS, Person

pytestmark = pytest.mark.timeout(600)

# Requests that code in a workspace can send from its page, to the main origin and to the other workspaces:
# [status, body] of each, or [0, ""] if the browser keeps the response from it.
ATTEMPTS = """async ([page, stop, tokens]) => {
    const send = async (address, options) => {
        try {
            const all = { headers: { Accept: "text/html" }, credentials: "include", ...options };
            const answer = await fetch(address, all);
            return [answer.status, await answer.text()];
        } catch {
            return [0, ""];
        }
    };
    const form = (token) => ({ method: "POST", body: new URLSearchParams({ token }) });
    return Promise.all([send(page), send(stop), ...tokens.map((token) => send(stop, form(token)))]);
}"""


@asynccontextmanager
async def limit_reached(person: Person) -> AsyncIterator[tuple[WorkspaceId, WorkspaceId, WorkspaceId]]:
    """Run two workspaces, the limit of one person, and create a third that is stopped."""
    async with (
        person.workspace(name="third", standby_ttl_seconds=HOUR_SECONDS) as third,
        person.workspace(name="second", standby_ttl_seconds=HOUR_SECONDS) as second,
    ):
        await person.move_to(third, "STANDBY")
        async with person.workspace(name="first", standby_ttl_seconds=HOUR_SECONDS) as first:
            await person.move_to(first, "RUNNING")
            await person.move_to(second, "RUNNING")
            yield first, second, third


async def test_stopping_one_workspace_on_the_page_opens_another(person: Person, tab: Tab) -> None:
    async with limit_reached(person) as (first, second, third):
        await tab.visit(third)
        assert await tab.read_headline() == "You have reached your limit"
        await tab.page.get_by_label("Stop first").click()
        assert await tab.read_headline() == "Stop this workspace?"
        await tab.page.get_by_role("button", name="Stop").click()
        await tab.wait_for_ide()
        assert urlsplit(tab.page.url).hostname == f"{third}.localhost"

        async def has_settled() -> bool:
            return await person.is_at_rest(third, "RUNNING") and await person.is_at_rest(first, "STANDBY")

        await until(has_settled, "the third runs in the place of the first")
        assert await person.is_at_rest(second, "RUNNING")


async def test_code_in_a_workspace_cannot_stop_another_one(person: Person, tab: Tab) -> None:
    async with limit_reached(person) as (first, second, third):
        await tab.visit(second)
        await tab.wait_for_ide()
        session = person.credentials.session
        tokens = ["", form_token_of(session, second), form_token_of(session, third)]
        stop = f"{person.url}/w/{first}/.codehub/stop"
        answers = await tab.page.evaluate(ATTEMPTS, [f"{person.url}/w/{third}/", stop, tokens])
        assert answers == [[0, ""]] * 5
        # On its own origin, such a path is the IDE's.
        own = await tab.page.evaluate(ATTEMPTS, ["/.codehub/progress", "/.codehub/stop", tokens])
        assert [status for status, _ in own] == [200, 404, 404, 404, 404]
        assert await person.is_at_rest(first, "RUNNING")
