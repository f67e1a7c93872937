"""The running limit: a person stops one workspace to open another, and code in a workspace cannot."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from codehub.domain.conditions import WorkspaceId
from proxy.forms import form_token_of
from testkit.waiting import until
from tests.e2e.browser import Tab
from tests.e2e.harness import HOUR_SECONDS, Person

pytestmark = pytest.mark.timeout(600)

# Requests that code in a workspace can send from its page: [status, body] of each.
ATTEMPTS = """async ([page, stop, tokens]) => {
    const send = async (address, options) => {
        const answer = await fetch(address, { headers: { Accept: "text/html" }, ...options });
        return [answer.status, await answer.text()];
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
        assert f"/w/{third}/" in tab.page.url

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
        stop = f"/w/{first}/.codehub/stop"
        answers = await tab.page.evaluate(ATTEMPTS, [f"/w/{third}/", stop, tokens])
        assert [status for status, _ in answers] == [503, 405, 403, 403, 403]
        assert all(form_token_of(session, first) not in body for _, body in answers)
        assert await person.is_at_rest(first, "RUNNING")
