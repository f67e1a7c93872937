"""A real JupyterLab in a real browser, through the proxy of `codehub up`."""

from http import HTTPStatus

import pytest

from testkit.deployment import Deployment
from testkit.waiting import until
from tests.e2e.browser import Tab, wait_for_file
from tests.e2e.harness import HOUR_SECONDS, Person

pytestmark = pytest.mark.timeout(600)

STARTING = {"Preparing your workspace", "Starting your workspace", "Getting your workspace ready"}
REFUSALS = 4


async def test_ide_opens_in_the_tab_that_waits_and_files_and_terminal_work(
    person: Person, deployment: Deployment, tab: Tab
) -> None:
    async with person.workspace(standby_ttl_seconds=HOUR_SECONDS) as workspace_id:
        await tab.visit(workspace_id)
        assert await tab.read_headline() in STARTING
        await tab.wait_for_ide()
        await tab.write_file("notes.txt", "typed in Chromium")
        await wait_for_file(deployment.home(workspace_id) / "notes.txt", "typed in Chromium")
        await tab.open_terminal()
        await tab.type("echo $((6*7)) > answer.txt\n")
        await wait_for_file(deployment.home(workspace_id) / "answer.txt", "42\n")
        assert tab.errors == []


async def test_archived_workspace_is_restored_by_the_button_on_its_page(
    person: Person, deployment: Deployment, tab: Tab
) -> None:
    async with person.workspace(standby_ttl_seconds=HOUR_SECONDS) as workspace_id:
        await person.move_to(workspace_id, "STANDBY")
        (deployment.home(workspace_id) / "notes.txt").write_text("from before")
        await person.move_to(workspace_id, "ARCHIVED")
        assert not deployment.home(workspace_id).exists()
        await tab.visit(workspace_id)
        assert await tab.read_headline() == "This workspace is archived"
        # The page itself is a 502, which Chromium logs as an error.
        assert tab.statuses[HTTPStatus.BAD_GATEWAY] == len(tab.errors) == 1
        tab.reset_counts()
        await tab.page.get_by_role("button", name="Restore and open").click()
        await tab.wait_for_ide()
        await tab.expect_file("notes.txt", "from before")
        assert tab.errors == []


async def test_open_tab_does_not_wake_a_stopped_workspace_but_a_reload_does(person: Person, tab: Tab) -> None:
    async with person.workspace(standby_ttl_seconds=HOUR_SECONDS) as workspace_id:
        await tab.visit(workspace_id)
        await tab.wait_for_ide()
        await tab.open_terminal()
        await person.move_to(workspace_id, "STANDBY")
        # Requests that failed while it stopped may have failed for another reason.
        tab.reset_counts()

        async def is_refused_often() -> bool:
            assert await person.is_at_rest(workspace_id, "STANDBY")
            return tab.statuses[HTTPStatus.SERVICE_UNAVAILABLE] >= REFUSALS and tab.sockets_refused > 0

        await until(is_refused_often, "the tab asks again and again")
        assert (await person.list_operations(workspace_id)).count("STARTING") == 1
        await tab.page.reload()
        assert await tab.read_headline() in STARTING
        await tab.wait_for_ide()
