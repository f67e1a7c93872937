"""`python -m proxy --workers 2`: both serve, a dead one is replaced, and none is left behind."""

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
from tests.front_door.prometheus import figure
from tests.front_door.proxy_process import accepts, assert_calm, free_pair, running_proxy, start_proxy
from tests.front_door.test_process import ENDS, in_front, open_socket

WORKERS = ("--workers", "2")


@pytest.fixture
def ports() -> tuple[int, int]:
    """For the metrics of each worker."""
    first = free_pair()
    return first, first + 1


@pytest.fixture
def environment(proxy_environment: dict[str, str], ports: tuple[int, int], tmp_path: Path) -> dict[str, str]:
    return {
        **proxy_environment,
        # What one that is killed leaves behind goes with the test.
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


async def ask(proxy: ServiceProcess, workspace_id: WorkspaceId, person: Person) -> int | None:
    """On a connection of its own, which any of the workers may take; None if that worker has just died."""
    url = f"{proxy.base_url}/w/{workspace_id}/x"
    try:
        async with aiohttp.ClientSession() as client, client.get(url, headers=person.bearer) as answer:
            return answer.status
    except aiohttp.ClientConnectionError:
        return None


async def until_both_serve(
    proxy: ServiceProcess, ports: tuple[int, int], workspace_id: WorkspaceId, person: Person
) -> None:
    async def both_have_served() -> bool:
        assert await ask(proxy, workspace_id, person) == 200
        return all([await figure(port, "requests") for port in ports])

    await until(both_have_served, "both workers have served")


async def test_both_workers_serve_on_one_port(
    proxy: ServiceProcess, ports: tuple[int, int], workspace_id: WorkspaceId, ann: Person
) -> None:
    assert len(workers_of(proxy)) == 2
    await until_both_serve(proxy, ports, workspace_id, ann)
    assert "all 2 workers are ready" in proxy.log.read_text()


async def test_a_worker_that_was_killed_is_replaced(
    proxy: ServiceProcess, ports: tuple[int, int], workspace_id: WorkspaceId, ann: Person
) -> None:
    victim, other = workers_of(proxy)
    victim.kill()
    seen: list[int | None] = []

    async def replaced() -> bool:
        seen.append(await ask(proxy, workspace_id, ann))
        now = workers_of(proxy)
        # A signal takes its time: right after it, everything may look as before.
        return len(now) == 2 and victim not in now and all(accepts(port) for port in ports)

    await until(replaced, "another one has taken its place")
    assert set(seen) <= {200, None}
    assert 200 in seen
    assert other in workers_of(proxy)
    assert "it is restarted" in proxy.log.read_text()
    await until_both_serve(proxy, ports, workspace_id, ann)


async def test_all_end_when_the_first_is_asked_to(
    proxy: ServiceProcess, harness: FrontDoorHarness, workspace_id: WorkspaceId, ann: Person
) -> None:
    family = process_tree(proxy.process.pid)
    opened = await open_socket(in_front(harness, proxy), ann, workspace_id)
    proxy.stop()
    assert await proxy.wait_ended() == 0
    assert (await opened.receive()).type in ENDS
    assert wait_until_ended(family) == []
    assert not accepts(proxy.port)


async def test_workers_end_with_whoever_started_them(
    proxy: ServiceProcess, harness: FrontDoorHarness, workspace_id: WorkspaceId, ann: Person
) -> None:
    workers = workers_of(proxy)
    opened = await open_socket(in_front(harness, proxy), ann, workspace_id)
    proxy.process.kill()
    assert await proxy.wait_ended() == -signal.SIGKILL
    assert (await opened.receive()).type in ENDS
    assert wait_until_ended(workers) == []
    assert not accepts(proxy.port)


async def test_if_one_cannot_start_all_end(
    environment: dict[str, str], ports: tuple[int, int], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", ports[1])):
        proxy = start_proxy(environment, *WORKERS, port=free_port(), directory=tmp_path)
        assert await proxy.wait_ended() == 1
    assert "cannot listen" in proxy.log.read_text()
    assert not accepts(proxy.port)
    assert not (tmp_path / "ready").exists()
    assert_calm(proxy)


async def test_told_to_stop_while_it_starts_it_does(environment: dict[str, str], tmp_path: Path) -> None:
    proxy = start_proxy(environment, *WORKERS, port=free_port(), directory=tmp_path)

    async def has_begun() -> bool:
        return bool(workers_of(proxy))

    await until(has_begun, "the first worker is being started")
    workers = workers_of(proxy)
    proxy.stop()
    assert await proxy.wait_ended() == 0
    assert wait_until_ended(workers) == []
    assert_calm(proxy)
