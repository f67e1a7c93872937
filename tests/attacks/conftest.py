"""One deployment and one browser for all attacks; an API and a proxy for each origin mode."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from testkit.deployment import Servers
from tests.attacks.harness import Harness, RunningWorkspaces, open_harness, open_workspaces
from tests.attacks.naive_hub import SECRET, NaiveHub, running_naive_hub
from tests.attacks.runs import open_ports
from tests.attacks.workspace_pages import pages
from tests.e2e.browser import running_browser

# Only Chromium resolves these names.
RESOLVER_RULES = "--host-resolver-rules=MAP *.test 127.0.0.1"


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with running_browser(RESOLVER_RULES) as running:
        yield running


@pytest.fixture(scope="package")
async def workspaces(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningWorkspaces]:
    async with open_workspaces(servers, tmp_path_factory.mktemp("attacks")) as opened:
        yield opened


@pytest.fixture(scope="package")
async def harness(workspaces: RunningWorkspaces, request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    """Run an API and a proxy in the origin mode of the parameter."""
    async with open_harness(workspaces, request.param) as opened:
        yield opened


@pytest.fixture(scope="package")
async def harness_with_ports(harness: Harness, browser: Browser) -> Harness:
    await open_ports(browser, harness)
    return harness


@pytest.fixture(scope="package")
async def naive_hub() -> AsyncIterator[NaiveHub]:
    async with running_naive_hub(pages(SECRET, "mallory")) as running:
        yield running
