"""Scripts of a workspace's page in Chromium, in every origin mode."""

import pytest
from playwright.async_api import Browser

from tests.attacks.attempts import ATTEMPTS, Control
from tests.attacks.expected_successes import PATH_MODE, PORT_MODE
from tests.attacks.harness import MODES, OTHER_PORT, Harness
from tests.attacks.naive_hub import NaiveHub
from tests.attacks.runs import make
from tests.attacks.targets import AttackTarget, CodeHubTarget, NaiveTarget, PortTarget

SAFE_MODES = [each for each in MODES if each != "path"]
WITH_PORTS = [each for each in MODES if each.startswith("subdomain")]
AGAINST_NEIGHBORS = [name for name, each in ATTEMPTS.items() if each.control is Control.NEIGHBOR]


@pytest.mark.parametrize("harness", SAFE_MODES, indirect=True)
@pytest.mark.parametrize("name", ATTEMPTS)
async def test_script_of_a_workspace_reaches_nothing_else(
    browser: Browser, harness: Harness, name: str
) -> None:
    is_known = harness.mode == "port" and name in PORT_MODE
    assert await make(browser, CodeHubTarget(harness), ATTEMPTS[name]) is is_known


@pytest.mark.parametrize("harness", ["subdomain"], indirect=True)
@pytest.mark.parametrize("name", ATTEMPTS)
async def test_script_of_a_port_reaches_neither_codehub_nor_the_ide(
    browser: Browser, harness_with_ports: Harness, name: str
) -> None:
    assert not await make(browser, PortTarget(harness_with_ports, neighbor=None), ATTEMPTS[name])


@pytest.mark.parametrize("harness", WITH_PORTS, indirect=True)
@pytest.mark.parametrize("name", AGAINST_NEIGHBORS)
async def test_script_of_a_port_reaches_no_other_port(
    browser: Browser, harness_with_ports: Harness, name: str
) -> None:
    assert not await make(browser, PortTarget(harness_with_ports, OTHER_PORT), ATTEMPTS[name])


@pytest.mark.parametrize("harness", ["path"], indirect=True)
@pytest.mark.parametrize("name", sorted(PATH_MODE))
async def test_path_mode_gives_this_up(browser: Browser, harness: Harness, name: str) -> None:
    assert await make(browser, CodeHubTarget(harness), ATTEMPTS[name])


@pytest.mark.parametrize("harness", ["subdomain"], indirect=True)
@pytest.mark.parametrize("name", ATTEMPTS)
async def test_same_script_succeeds_where_nothing_stops_it(
    browser: Browser, harness: Harness, naive_hub: NaiveHub, name: str
) -> None:
    control = ATTEMPTS[name].control
    target: AttackTarget = (
        NaiveTarget(naive_hub) if control is Control.NAIVE else CodeHubTarget(harness, control)
    )
    assert await make(browser, target, ATTEMPTS[name])
