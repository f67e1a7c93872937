"""A person with a real browser uses code-server in a container through `codehub up`."""

from collections.abc import AsyncIterator

import pytest

from codehub import contracts
from codehub.domain.conditions import WorkspaceId
from testkit.deployment import Deployment
from testkit.docker_engine import NETWORK, WORKSPACE_IMAGE, need_docker, opened_engine, volume_path
from testkit.waiting import until
from tests.docker.code_server import CodeServer
from tests.e2e.browser import Tab, open_tab, running_browser, wait_for_file
from tests.e2e.harness import HOUR_SECONDS, QUICK_TO_STOP, Person, running_codehub

pytestmark = pytest.mark.timeout(600)

STARTING = {"Preparing your workspace", "Starting your workspace", "Getting your workspace ready"}
STOPPED_ONCE = ["PROVISIONING", "STARTING", "STOPPING"]
MORE_SWEEPS = 4


@pytest.fixture(scope="module")
async def codehub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Person, Deployment]]:
    """Start a CodeHub that stops idle workspaces quickly, and remove everything that it created."""
    need_docker(WORKSPACE_IMAGE)
    async with opened_engine() as engine:
        settings = {
            **QUICK_TO_STOP,
            "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local-docker",
            "CODEHUB_WORKSPACES_DEFAULT_IMAGE_REF": WORKSPACE_IMAGE,
            "CODEHUB_DOCKER_PROJECT": engine.options.project,
            "CODEHUB_DOCKER_NETWORK": NETWORK,
            "CODEHUB_DOCKER_START_SECONDS": "120",
        }
        data_dir = tmp_path_factory.mktemp("code-server") / "codehub"
        async with running_codehub(data_dir, settings=settings) as running:
            yield running


@pytest.fixture
async def tab(codehub: tuple[Person, Deployment]) -> AsyncIterator[Tab]:
    async with running_browser() as browser, open_tab(browser, codehub[0]) as opened:
        yield opened


async def test_a_home_that_was_edited_in_code_server_is_restored_from_its_archive(
    codehub: tuple[Person, Deployment], tab: Tab
) -> None:
    person, code_server = codehub[0], CodeServer(tab)
    workspace_id = await person.create(image_ref=WORKSPACE_IMAGE, standby_ttl_seconds=HOUR_SECONDS)
    home = volume_path(workspace_id)
    await code_server.visit(workspace_id)
    assert await tab.read_headline() in STARTING
    await code_server.wait_until_open()
    await code_server.expect_no_questions()
    await code_server.write_file("notes.txt", "typed in Chromium")
    await wait_for_file(home / "notes.txt", "typed in Chromium")
    await code_server.open_terminal()
    await code_server.type("echo $((6*7)) > answer.txt\n")
    await wait_for_file(home / "answer.txt", "42\n")

    await person.move_to(workspace_id, "STANDBY")
    await person.move_to(workspace_id, "ARCHIVED")
    assert not home.exists()
    await code_server.visit(workspace_id)
    assert await tab.read_headline() == "This workspace is archived"
    await tab.page.get_by_role("button", name="Restore and open").click()
    await code_server.wait_until_open()
    await code_server.expect_file("notes.txt", "typed in Chromium")
    await code_server.expect_file("answer.txt", "42")


async def test_an_open_tab_with_code_server_does_not_keep_its_workspace_running(
    codehub: tuple[Person, Deployment], tab: Tab
) -> None:
    (person, deployment), code_server = codehub, CodeServer(tab)
    # Idle time counts only after the tab is open.
    workspace_id = await person.create(image_ref=WORKSPACE_IMAGE, standby_ttl_seconds=HOUR_SECONDS)
    await code_server.visit(workspace_id)
    await code_server.wait_until_open()
    await code_server.open_terminal()
    await code_server.type("#")
    tab.reset_counts()
    await person.reset_stop_time(workspace_id)
    await until(lambda: person.is_at_rest(workspace_id, "STANDBY"), "nobody uses it, so it stops")
    assert tab.messages_sent > 0, "it went on talking until then"
    await stays_stopped(person, deployment, workspace_id)
    assert tab.sockets_refused > 0, "it went on asking"
    assert await person.list_operations(workspace_id) == STOPPED_ONCE


async def stays_stopped(person: Person, deployment: Deployment, workspace_id: WorkspaceId) -> None:
    """Return all requests of the tab."""
    schedule = deployment.client.get_schedule_handle(contracts.TTL_SCHEDULE)
    first = (await schedule.describe()).info.num_actions

    async def is_left_alone() -> bool:
        assert await person.is_at_rest(workspace_id, "STANDBY")
        return (await schedule.describe()).info.num_actions >= first + MORE_SWEEPS

    await until(is_left_alone, "more sweeps")
