"""One deployment and one browser for all attacks; an API and a proxy for each origin mode."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from testkit.deployment import Servers
from tests.attacks.naive_hub import SECRET, NaiveHub, running_naive_hub
from tests.attacks.runs import open_ports
from tests.attacks.scene import Estate, Scene, open_estate, open_scene
from tests.attacks.site import pages
from tests.e2e.browser import running_browser

# Names of this machine, for Chromium alone.
RESOLVER_RULES = "--host-resolver-rules=MAP *.test 127.0.0.1"


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with running_browser(RESOLVER_RULES) as running:
        yield running


@pytest.fixture(scope="package")
async def estate(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Estate]:
    async with open_estate(servers, tmp_path_factory.mktemp("attacks")) as opened:
        yield opened


@pytest.fixture(scope="package")
async def scene(estate: Estate, request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    """Run an API and a proxy in the mode that is the parameter."""
    async with open_scene(estate, request.param) as opened:
        yield opened


@pytest.fixture(scope="package")
async def scene_with_ports(scene: Scene, browser: Browser) -> Scene:
    await open_ports(browser, scene)
    return scene


@pytest.fixture(scope="package")
async def naive_hub() -> AsyncIterator[NaiveHub]:
    async with running_naive_hub(pages(SECRET, "mallory")) as running:
        yield running
