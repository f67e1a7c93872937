"""One `codehub up` and one browser for all tests that use them."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from testkit.deployment import Deployment
from tests.e2e.browser import Tab, open_tab, running_browser
from tests.e2e.harness import QUICK_TO_STOP, Person, running_codehub


@pytest.fixture(scope="package")
async def codehub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Person, Deployment]]:
    """Run CodeHub with short idle times, so that unused workspaces stop within a test."""
    data_dir = tmp_path_factory.mktemp("e2e") / "codehub"
    async with running_codehub(data_dir, settings=QUICK_TO_STOP) as running:
        yield running


@pytest.fixture(scope="package")
def person(codehub: tuple[Person, Deployment]) -> Person:
    return codehub[0]


@pytest.fixture(scope="package")
def deployment(codehub: tuple[Person, Deployment]) -> Deployment:
    return codehub[1]


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with running_browser() as running:
        yield running


@pytest.fixture
async def tab(browser: Browser, person: Person) -> AsyncIterator[Tab]:
    async with open_tab(browser, person) as opened:
        yield opened
