"""The Helm chart on a real cluster: from its installation to its removal, used and broken meanwhile.

The tests share one release. The last one removes it.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from playwright.async_api import Page

from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import container_name, volume_name
from testkit.deployment import Servers
from testkit.kubernetes.cluster import Cluster
from testkit.waiting import until
from tests.docker.code_server import CodeServer
from tests.e2e.browser import Tab, wait_for_file
from tests.e2e.dashboard import Dashboard, open_dashboard
from tests.kubernetes.chart import PUBLIC_URL, Chart, load_images
from tests.kubernetes.chart_browser import browser_at
from tests.kubernetes.chart_load import go_up_and_down, kill_workers, under_load
from tests.kubernetes.deployment import cordoned
from tests.kubernetes.release import Release, User, installed_release

pytestmark = pytest.mark.timeout(900)

PARTS = ("api", "proxy", "worker", "egress")
REPLICAS = 2
WORKSPACES = 4
KILLS = 6
KILL_SECONDS = 10


@pytest.fixture(scope="module")
async def release(
    servers: Servers, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Release]:
    load_images(cluster)
    async with installed_release(servers, cluster, tmp_path_factory.mktemp("chart")) as installed:
        yield installed


@pytest.fixture(scope="module")
async def user(release: Release) -> User:
    return await release.new_user()


@pytest.fixture(scope="module")
async def running(user: User) -> WorkspaceId:
    """Return a workspace with the tiny IDE that runs until the end."""
    return await user.create("RUNNING")


@pytest.fixture
async def dashboard(release: Release, tmp_path: Path) -> AsyncIterator[Dashboard]:
    """Return the dashboard in Chromium, of an administrator whom the command line has added."""
    command = ("codehub", "user", "add", "admin", "--admin", "--generate")
    password = await asyncio.to_thread(release.chart.execute, "api", *command)
    async with (
        browser_at(release.chart, tmp_path) as browser,
        open_dashboard(browser, PUBLIC_URL, "admin") as opened,
    ):
        await opened.sign_in(password=password.strip())
        yield opened


async def test_an_installed_release_is_ready_and_runs_a_workspace(
    release: Release, running: WorkspaceId
) -> None:
    chart = release.chart
    assert {part: ready_pods(chart, part) for part in PARTS} == dict.fromkeys(PARTS, REPLICAS)
    pods = chart.api.list(f"/api/v1/namespaces/{chart.workspaces}/pods")
    assert [pod["metadata"]["labels"]["codehub.io/workspace-id"] for pod in pods] == [running]


async def test_code_server_in_chromium_comes_back_from_its_archive_on_another_node(
    release: Release, dashboard: Dashboard
) -> None:
    chart, page = release.chart, dashboard.page
    workspace_id = await dashboard.create("notes")
    await dashboard.expect_badge("notes", "Running")
    async with page.expect_popup() as opening:
        await dashboard.press("notes", "Open")
    ide = await opening.value
    await use_code_server(ide, workspace_id, release)
    first_node = node_of(chart, workspace_id)

    await dashboard.press("notes", "Stop")
    await dashboard.expect_badge("notes", "Stopped")
    await dashboard.choose("notes", "Archive")
    await dashboard.expect_badge("notes", "Archived")
    claim = f"/api/v1/namespaces/{chart.workspaces}/persistentvolumeclaims/{volume_name(workspace_id)}"
    assert chart.api.find(claim) is None

    with cordoned(chart.api, first_node):
        await ide.goto(f"{PUBLIC_URL}/w/{workspace_id}/")
        await ide.get_by_role("button", name="Restore and open").click()
        code_server = CodeServer(Tab(ide, PUBLIC_URL))
        await code_server.wait_until_open()
    assert node_of(chart, workspace_id) != first_node
    await code_server.expect_file("notes.txt", "typed in Chromium")
    await code_server.expect_file("answer.txt", "42")
    assert dashboard.errors == []

    await dashboard.press("notes", "Stop")
    await dashboard.expect_badge("notes", "Stopped")


async def use_code_server(ide: Page, workspace_id: WorkspaceId, release: Release) -> None:
    """Write one file in the editor and another in the terminal."""
    code_server = CodeServer(Tab(ide, PUBLIC_URL))
    await code_server.wait_until_open()
    assert urlsplit(ide.url).netloc == f"{workspace_id}.localhost:8080"
    home = release.homes.path(workspace_id)
    await code_server.write_file("notes.txt", "typed in Chromium")
    await wait_for_file(home / "notes.txt", "typed in Chromium")
    await code_server.open_terminal()
    await code_server.type("echo $((6*7)) > answer.txt\n")
    await wait_for_file(home / "answer.txt", "42\n")


async def test_no_operation_fails_while_a_worker_is_killed_every_ten_seconds(
    release: Release, user: User
) -> None:
    workers = release.chart.pods("worker")
    assert len({pod["spec"]["nodeName"] for pod in workers}) == len(workers) == REPLICAS
    workspace_ids = await asyncio.gather(*(user.create("STANDBY") for _ in range(WORKSPACES)))
    for workspace_id in workspace_ids:
        release.homes.fill(workspace_id)
    before = {each: release.homes.describe(each) for each in workspace_ids}
    end = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for workspace_id in workspace_ids:
            tasks.create_task(go_up_and_down(user, workspace_id, end))
        await kill_workers(release.chart, KILLS, KILL_SECONDS)
        end.set()
    attempts = []
    for workspace_id in workspace_ids:
        operations = await user.operations(workspace_id)
        assert {(each["result"], each["attempts"]) for each in operations} == {("COMPLETED", 1)}
        for each in operations:
            attempts += [step["attempts"] for step in await user.steps(workspace_id, each["id"])]
    assert max(attempts) > 1, "no kill has interrupted a step"
    assert {each: release.homes.describe(each) for each in workspace_ids} == before


async def test_an_upgrade_fails_no_request_and_breaks_no_open_websocket(
    release: Release, user: User, running: WorkspaceId
) -> None:
    chart = release.chart
    origin = f"{running}.{urlsplit(PUBLIC_URL).netloc}"
    headers = {**user.headers, "Host": origin, "Origin": f"http://{origin}"}
    proxy = chart.proxy_url()
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{proxy}/socket", headers=headers) as socket,
    ):
        async with under_load(chart) as load:
            await asyncio.to_thread(chart.install, "--set-string", "settings.CODEHUB_LOG_LEVEL=debug")
        assert load.failures == []
        assert set(load.statuses) == {200}

        # All proxies have been replaced. The old one is draining, and would go on until its deadline.
        await until_replaced(chart, urlsplit(proxy).hostname or "")
        await socket.send_str("still here")
        assert await socket.receive_str() == "still here"


async def until_replaced(chart: Chart, address: str) -> None:
    async def is_told_to_stop() -> bool:
        (pod,) = (each for each in chart.pods("proxy") if each["status"]["podIP"] == address)
        return "deletionTimestamp" in pod["metadata"]

    await until(is_told_to_stop, "the old proxy is told to stop")


async def test_a_removed_release_leaves_homes_workspaces_and_the_policy_that_denies_everything(
    release: Release, running: WorkspaceId
) -> None:
    chart = release.chart
    await asyncio.to_thread(chart.helm, "uninstall", "codehub")
    namespace = f"/namespaces/{chart.workspaces}"
    assert chart.api.find(f"/api/v1{namespace}/pods/{container_name(running)}")
    assert chart.api.find(f"/api/v1{namespace}/persistentvolumeclaims/{volume_name(running)}")
    policies = chart.api.list(f"/apis/networking.k8s.io/v1{namespace}/networkpolicies")
    assert [policy["metadata"]["name"] for policy in policies] == ["codehub-workspaces-deny"]


def node_of(chart: Chart, workspace_id: WorkspaceId) -> str:
    pod = chart.api.get(f"/api/v1/namespaces/{chart.workspaces}/pods/{container_name(workspace_id)}")
    return str(pod["spec"]["nodeName"])


def ready_pods(chart: Chart, part: str) -> int:
    statuses = [pod["status"].get("containerStatuses", ()) for pod in chart.pods(part)]
    return sum(each["ready"] for containers in statuses for each in containers)
