"""`python -m proxy --workers 2`: both serve, a dead one is restarted, and none is left behind."""

import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psutil
import pytest

from codehub.domain.conditions import WorkspaceId
from testkit.processes import free_port, process_tree, wait_until_ended
from testkit.service_process import ServiceProcess
from testkit.waiting import until
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import FrontDoorHarness, Person
from tests.front_door.prometheus import sample
from tests.front_door.proxy_process import (
    assert_clean_log,
    free_pair,
    is_listening,
    running_proxy,
    start_proxy,
)
from tests.front_door.test_process import ENDS, open_socket, through

WORKERS = ("--workers", "2")


@pytest.fixture
def ports() -> tuple[int, int]:
    """The metrics ports of the two workers."""
    first = free_pair()
    return first, first + 1


@pytest.fixture
def environment(proxy_environment: dict[str, str], ports: tuple[int, int], tmp_path: Path) -> dict[str, str]:
    return {
        **proxy_environment,
        # Files of a killed process are removed with the test.
        "TMPDIR": str(tmp_path),
        "CODEHUB_PROXY_METRICS_PORT": str(ports[0]),
        "CODEHUB_PROXY_DRAIN_SECONDS": "1",
    }


@pytest.fixture
async def proxy(environment: dict[str, str]) -> AsyncIterator[ServiceProcess]:
    async with running_proxy(environment, *WORKERS) as running:
        yield running


@pytest.fixture
async def workspace_id(harness: FrontDoorHarness, ann: Person) -> AsyncIterator[WorkspaceId]:
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        yield workspace_id


def workers_of(proxy: ServiceProcess) -> list[psutil.Process]:
    return psutil.Process(proxy.process.pid).children()


async def request_status(proxy: ServiceProcess, workspace_id: WorkspaceId, person: Person) -> int | None:
    """Send a request on a new connection to any worker; return None if that worker has just died."""
    url, host = f"{proxy.base_url}/x", f"{workspace_id}.localhost:{proxy.port}"
    try:
        async with (
            aiohttp.ClientSession() as client,
            client.get(url, headers={**person.bearer, "Host": host}) as response,
        ):
            return response.status
    except aiohttp.ClientConnectionError:
        return None


async def wait_until_both_serve(
    proxy: ServiceProcess, ports: tuple[int, int], workspace_id: WorkspaceId, person: Person
) -> None:
    async def both_have_served() -> bool:
        assert await request_status(proxy, workspace_id, person) == 200
        return all([await sample(port, "requests") for port in ports])

    await until(both_have_served, "both workers have served")


async def test_both_workers_serve_on_one_port(
    proxy: ServiceProcess, ports: tuple[int, int], workspace_id: WorkspaceId, ann: Person
) -> None:
    assert len(workers_of(proxy)) == 2
    await wait_until_both_serve(proxy, ports, workspace_id, ann)
    assert "all 2 workers are ready" in proxy.log.read_text()


async def test_a_killed_worker_is_restarted(
    proxy: ServiceProcess, ports: tuple[int, int], workspace_id: WorkspaceId, ann: Person
) -> None:
    victim, other = workers_of(proxy)
    victim.kill()
    seen: list[int | None] = []

    async def replaced() -> bool:
        seen.append(await request_status(proxy, workspace_id, ann))
        now = workers_of(proxy)
        # The signal takes a moment, so nothing may have changed yet.
        return len(now) == 2 and victim not in now and all(is_listening(port) for port in ports)

    await until(replaced, "the worker is restarted")
    assert set(seen) <= {200, None}
    assert 200 in seen
    assert other in workers_of(proxy)
    assert "it is restarted" in proxy.log.read_text()
    await wait_until_both_serve(proxy, ports, workspace_id, ann)


async def test_all_processes_stop_together(
    proxy: ServiceProcess, harness: FrontDoorHarness, workspace_id: WorkspaceId, ann: Person
) -> None:
    family = process_tree(proxy.process.pid)
    opened = await open_socket(through(harness, proxy), ann, workspace_id)
    proxy.stop()
    assert await proxy.wait_ended() == 0
    assert (await opened.receive()).type in ENDS
    assert wait_until_ended(family) == []
    assert not is_listening(proxy.port)


async def test_workers_end_when_their_parent_is_killed(
    proxy: ServiceProcess, harness: FrontDoorHarness, workspace_id: WorkspaceId, ann: Person
) -> None:
    workers = workers_of(proxy)
    opened = await open_socket(through(harness, proxy), ann, workspace_id)
    proxy.process.kill()
    assert await proxy.wait_ended() == -signal.SIGKILL
    assert (await opened.receive()).type in ENDS
    assert wait_until_ended(workers) == []
    assert not is_listening(proxy.port)


async def test_all_stop_if_one_cannot_start(
    environment: dict[str, str], ports: tuple[int, int], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", ports[1])):
        proxy = start_proxy(environment, *WORKERS, port=free_port(), directory=tmp_path)
        assert await proxy.wait_ended() == 1
    assert "cannot listen" in proxy.log.read_text()
    assert not is_listening(proxy.port)
    assert not (tmp_path / "ready").exists()
    assert_clean_log(proxy)


async def test_a_stop_while_it_starts(environment: dict[str, str], tmp_path: Path) -> None:
    proxy = start_proxy(environment, *WORKERS, port=free_port(), directory=tmp_path)

    async def has_started() -> bool:
        return bool(workers_of(proxy))

    await until(has_started, "the first worker is being started")
    workers = workers_of(proxy)
    proxy.stop()
    assert await proxy.wait_ended() == 0
    assert wait_until_ended(workers) == []
    assert_clean_log(proxy)
