"""`python -m proxy`: how it starts, fails to start, and stops."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from redis.asyncio import Redis

from codehub.adapters.redis.activity import ACTIVITY_KEY
from codehub.domain.conditions import WorkspaceId
from codehub.origins import Origins
from testkit.processes import free_port
from testkit.service_process import ServiceProcess
from testkit.waiting import until
from tests.front_door.fake_ide import running_ide
from tests.front_door.harness import FrontDoorHarness, Person
from tests.front_door.proxy_process import assert_clean_log, is_listening, running_proxy, start_proxy

PATIENT = {"CODEHUB_PROXY_DRAIN_SECONDS": "3600"}
ENDS = {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.ERROR}


@pytest.fixture
async def workspace_id(harness: FrontDoorHarness, ann: Person) -> AsyncIterator[WorkspaceId]:
    """A workspace of Ann with a running IDE."""
    workspace_id = await harness.workspace(ann)
    async with running_ide(harness.root, workspace_id):
        yield workspace_id


def through(harness: FrontDoorHarness, proxy: ServiceProcess) -> FrontDoorHarness:
    """Return a harness that sends its requests to this process."""
    return replace(harness, url=proxy.base_url, origins=Origins(f"http://localhost:{proxy.port}"))


async def open_socket(
    harness: FrontDoorHarness, person: Person, workspace_id: WorkspaceId
) -> aiohttp.ClientWebSocketResponse:
    opened = await harness.connect(f"/w/{workspace_id}/ws", person.bearer)
    assert await echoes(opened)
    return opened


async def echoes(opened: aiohttp.ClientWebSocketResponse) -> bool:
    await opened.send_str("hello")
    return bool((await opened.receive()).data == "hello")


async def wait_until_refusing(proxy: ServiceProcess) -> None:
    async def refuses() -> bool:
        return not is_listening(proxy.port)

    await until(refuses, "new connections are refused")


async def test_a_ready_proxy_serves(
    harness: FrontDoorHarness, proxy_environment: dict[str, str], ann: Person, workspace_id: WorkspaceId
) -> None:
    async with running_proxy(proxy_environment) as proxy:
        response = await through(harness, proxy).request(f"/w/{workspace_id}/x", ann.cookie)
        assert response.status == 200
        assert f"ready on http://127.0.0.1:{proxy.port}" in proxy.log.read_text()
        proxy.stop()
        assert await proxy.wait_ended() == 0
        assert "stopped" in proxy.log.read_text()


@pytest.mark.parametrize("metrics", [False, True])
async def test_a_taken_port_is_reported(
    proxy_environment: dict[str, str], tmp_path: Path, metrics: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        more = {"CODEHUB_PROXY_METRICS_PORT": str(port)} if metrics else {}
        proxy = start_proxy(
            {**proxy_environment, **more}, port=free_port() if metrics else port, directory=tmp_path
        )
        assert await proxy.wait_ended() == 1
    log = proxy.log.read_text()
    assert "cannot listen on 127.0.0.1:" in log
    assert "choose other ports with CODEHUB_PROXY_PORT" in log
    assert not (tmp_path / "ready").exists()
    assert_clean_log(proxy)


@pytest.mark.parametrize(
    ("settings", "arguments", "sentence"),
    [
        ({"CODEHUB_TEMPORAL_ADDRESS": ""}, (), "CODEHUB_TEMPORAL_ADDRESS"),
        ({"CODEHUB_DATABASE_URL": "mysql://x"}, (), "CODEHUB_DATABASE_URL"),
        ({"CODEHUB_PROXY_DRAIN_SECONDS": "soon"}, (), "CODEHUB_PROXY_DRAIN_SECONDS"),
        ({"CODEHUB_REDIS_URL": ""}, ("--workers", "2"), "CODEHUB_REDIS_URL"),
    ],
)
async def test_wrong_settings_are_reported(
    proxy_environment: dict[str, str],
    tmp_path: Path,
    settings: dict[str, str],
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    environment = {name: value for name, value in {**proxy_environment, **settings}.items() if value}
    proxy = start_proxy(environment, *arguments, port=free_port(), directory=tmp_path)
    assert await proxy.wait_ended() == 2
    assert sentence in proxy.log.read_text()
    assert_clean_log(proxy)


async def test_an_open_request_ends_normally(
    harness: FrontDoorHarness, proxy_environment: dict[str, str], ann: Person, workspace_id: WorkspaceId
) -> None:
    started, rest = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"one "
        started.set()
        await rest.wait()
        yield b"two"

    async with running_proxy({**proxy_environment, **PATIENT}) as proxy:
        path, headers = await through(harness, proxy).locate(f"/w/{workspace_id}/slow", ann.bearer)
        sending = asyncio.create_task(
            harness.client.post(proxy.base_url + path, headers=headers, data=body())
        )
        await started.wait()
        proxy.stop()
        await wait_until_refusing(proxy)
        rest.set()
        async with await sending as response:
            assert (response.status, await response.text()) == (200, "POST /slow one two")
        # No other request is open, so the deadline does not matter.
        assert await proxy.wait_ended() == 0


async def test_a_websocket_stays_open_until_the_deadline(
    harness: FrontDoorHarness, proxy_environment: dict[str, str], ann: Person, workspace_id: WorkspaceId
) -> None:
    async with running_proxy({**proxy_environment, "CODEHUB_PROXY_DRAIN_SECONDS": "8"}) as proxy:
        opened = await open_socket(through(harness, proxy), ann, workspace_id)
        proxy.stop()
        await wait_until_refusing(proxy)
        assert await echoes(opened)
        assert (await opened.receive()).type in ENDS
        assert await proxy.wait_ended() == 0
        assert "1 connections did not end in time" in proxy.log.read_text()


async def test_a_second_signal_stops_it_at_once(
    harness: FrontDoorHarness, proxy_environment: dict[str, str], ann: Person, workspace_id: WorkspaceId
) -> None:
    async with running_proxy({**proxy_environment, **PATIENT}) as proxy:
        opened = await open_socket(through(harness, proxy), ann, workspace_id)
        proxy.stop()
        await wait_until_refusing(proxy)
        assert await echoes(opened)
        proxy.stop()
        assert (await opened.receive()).type in ENDS
        assert await proxy.wait_ended() == 0


async def test_recorded_activity_is_flushed_before_the_end(
    harness: FrontDoorHarness,
    proxy_environment: dict[str, str],
    ann: Person,
    workspace_id: WorkspaceId,
    redis_client: Redis,
) -> None:
    async with running_proxy({**proxy_environment, "CODEHUB_PROXY_ACTIVITY_SECONDS": "3600"}) as proxy:
        assert (await through(harness, proxy).request(f"/w/{workspace_id}/lab", ann.browser)).status == 200
        assert await redis_client.zscore(ACTIVITY_KEY, workspace_id) is None
        proxy.stop()
        assert await proxy.wait_ended() == 0
    assert await redis_client.zscore(ACTIVITY_KEY, workspace_id) is not None


async def test_a_redis_that_does_not_answer_does_not_block_the_end(
    harness: FrontDoorHarness, proxy_environment: dict[str, str], ann: Person, workspace_id: WorkspaceId
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        redis = {"CODEHUB_REDIS_URL": f"redis://127.0.0.1:{silent.getsockname()[1]}/0"}
        async with running_proxy({**proxy_environment, **redis}) as proxy:
            assert (
                await through(harness, proxy).request(f"/w/{workspace_id}/lab", ann.browser)
            ).status == 200
            proxy.stop()
            assert await proxy.wait_ended() == 0
