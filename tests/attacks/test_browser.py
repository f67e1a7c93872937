"""Scripts of a workspace's page in Chromium, in every origin mode."""

import pytest
from playwright.async_api import Browser

from tests.attacks.attempts import ATTEMPTS, Control
from tests.attacks.known import PATH_MODE, PORT_MODE
from tests.attacks.naive_hub import NaiveHub
from tests.attacks.runs import make
from tests.attacks.scene import MODES, OTHER_PORT, Scene
from tests.attacks.stages import CodeHubStage, NaiveStage, PortStage, Stage

SAFE_MODES = [each for each in MODES if each != "path"]
WITH_PORTS = [each for each in MODES if each.startswith("subdomain")]
AGAINST_NEIGHBORS = [name for name, each in ATTEMPTS.items() if each.control is Control.NEIGHBOR]


@pytest.mark.parametrize("scene", SAFE_MODES, indirect=True)
@pytest.mark.parametrize("name", ATTEMPTS)
async def test_script_of_a_workspace_reaches_nothing_else(browser: Browser, scene: Scene, name: str) -> None:
    is_known = scene.mode == "port" and name in PORT_MODE
    assert await make(browser, CodeHubStage(scene), ATTEMPTS[name]) is is_known


@pytest.mark.parametrize("scene", ["subdomain"], indirect=True)
@pytest.mark.parametrize("name", ATTEMPTS)
async def test_script_of_a_port_reaches_neither_codehub_nor_the_ide(
    browser: Browser, scene_with_ports: Scene, name: str
) -> None:
    assert not await make(browser, PortStage(scene_with_ports, neighbor=None), ATTEMPTS[name])


@pytest.mark.parametrize("scene", WITH_PORTS, indirect=True)
@pytest.mark.parametrize("name", AGAINST_NEIGHBORS)
async def test_script_of_a_port_reaches_no_other_port(
    browser: Browser, scene_with_ports: Scene, name: str
) -> None:
    assert not await make(browser, PortStage(scene_with_ports, OTHER_PORT), ATTEMPTS[name])


@pytest.mark.parametrize("scene", ["path"], indirect=True)
@pytest.mark.parametrize("name", sorted(PATH_MODE))
async def test_path_mode_gives_this_up(browser: Browser, scene: Scene, name: str) -> None:
    assert await make(browser, CodeHubStage(scene), ATTEMPTS[name])


@pytest.mark.parametrize("scene", ["subdomain"], indirect=True)
@pytest.mark.parametrize("name", ATTEMPTS)
async def test_same_script_succeeds_where_nothing_stops_it(
    browser: Browser, scene: Scene, naive_hub: NaiveHub, name: str
) -> None:
    control = ATTEMPTS[name].control
    stage: Stage = NaiveStage(naive_hub) if control is Control.NAIVE else CodeHubStage(scene, control)
    assert await make(browser, stage, ATTEMPTS[name])
