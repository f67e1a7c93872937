"""Only use keeps a workspace running: an open tab that nobody touches does not, although it polls."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from playwright.async_api import Browser

from codehub import contracts
from codehub.domain.conditions import WorkspaceId
from testkit.deployment import Deployment
from testkit.waiting import until
from tests.e2e.browser import Tab, open_tab
from tests.e2e.harness import HOUR_SECONDS, STANDBY_SECONDS, SWEEP_SECONDS, Person

SWEEPS_IN_THREE_TIMES = 3 * STANDBY_SECONDS // SWEEP_SECONDS + 1
MORE_SWEEPS = 4
STOPPED_ONCE = ["PROVISIONING", "STARTING", "STOPPING"]


async def count_sweeps(deployment: Deployment) -> int:
    schedule = deployment.client.get_schedule_handle(contracts.TTL_SCHEDULE)
    return (await schedule.describe()).info.num_actions


@asynccontextmanager
async def open_everything(browser: Browser, person: Person) -> AsyncIterator[tuple[Tab, WorkspaceId]]:
    """Open a notebook with its kernel, and a terminal, and press a key there."""
    async with (
        # Idle time counts only after everything is open, however long that takes.
        person.workspace(standby_ttl_seconds=HOUR_SECONDS) as workspace_id,
        open_tab(browser, person) as tab,
    ):
        await tab.visit(workspace_id)
        await tab.wait_for_ide()
        await tab.open_notebook()
        await tab.open_terminal()
        await tab.type("#")
        tab.reset_counts()
        await person.reset_stop_time(workspace_id)
        yield tab, workspace_id


async def wait_for_standby(person: Person, workspace_id: WorkspaceId) -> None:
    async def is_stopped() -> bool:
        return await person.is_at_rest(workspace_id, "STANDBY")

    await until(is_stopped, "nobody uses it, so it stops")


async def leave_untouched(browser: Browser, person: Person, deployment: Deployment) -> None:
    """Check that the workspace stops and stays stopped, whatever the tab requests."""
    async with open_everything(browser, person) as (tab, workspace_id):
        await wait_for_standby(person, workspace_id)
        assert tab.statuses[HTTPStatus.OK] > 0, "it polled until then"
        tab.reset_counts()
        first = await count_sweeps(deployment)

        async def is_left_alone() -> bool:
            assert await person.is_at_rest(workspace_id, "STANDBY")
            return await count_sweeps(deployment) >= first + MORE_SWEEPS

        await until(is_left_alone, "more sweeps")
        assert tab.statuses[HTTPStatus.SERVICE_UNAVAILABLE] > 0, "it went on asking"
        assert tab.sockets_refused > 0
        assert await person.list_operations(workspace_id) == STOPPED_ONCE


async def type_now_and_then(browser: Browser, person: Person, deployment: Deployment) -> None:
    """Check that typing keeps it running for three times the idle time, and that it stops afterwards."""
    async with open_everything(browser, person) as (tab, workspace_id):
        first, typed_at = await count_sweeps(deployment), time.monotonic()

        async def has_lasted() -> bool:
            nonlocal typed_at
            if time.monotonic() - typed_at > SWEEP_SECONDS:
                await tab.type("#")
                typed_at = time.monotonic()
            assert await person.is_at_rest(workspace_id, "RUNNING")
            return await count_sweeps(deployment) >= first + SWEEPS_IN_THREE_TIMES

        await until(has_lasted, "many sweeps")
        await wait_for_standby(person, workspace_id)
        assert await person.list_operations(workspace_id) == STOPPED_ONCE


@pytest.mark.timeout(600)
async def test_tab_keeps_its_workspace_running_only_while_somebody_types(
    browser: Browser, person: Person, deployment: Deployment
) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(leave_untouched(browser, person, deployment))
        tasks.create_task(type_now_and_then(browser, person, deployment))
