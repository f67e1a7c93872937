"""The agent's published port: nothing without the secret of the container, and nothing of CodeHub's own."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from codehub.domain.conditions import WorkspaceId
from codehub.instance_ports import NO_AGENT
from codehub.ports import InstanceRequest, PortUnavailable, Upstream
from testkit.docker_engine import build
from testkit.fakes import IMAGE
from tests.contracts.instance_harness import DockerHarness, exchange, opened_docker_harness

IDE_PORT, AGENT_PORT, RELAY_PORT = 8080, 3129, 3128
WITHOUT_AGENT = "codehub-test-without-agent"


@dataclass(frozen=True)
class Running:
    """A workspace with a program on loopback."""

    harness: DockerHarness
    workspace_id: WorkspaceId
    port: int

    async def upstream(self) -> Upstream:
        found = await self.harness.instances.find_port(self.workspace_id, self.port)
        assert found is not None
        return found


async def start(harness: DockerHarness, image_ref: str) -> WorkspaceId:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    await harness.instances.start(InstanceRequest(workspace_id, image_ref), lambda _: None)
    return workspace_id


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with opened_docker_harness(publish_ports=True) as harness:
        workspace_id = await start(harness, IMAGE)
        yield Running(harness, workspace_id, await harness.listen(workspace_id))


async def test_other_users_of_the_host_open_nothing_without_the_secret(running: Running) -> None:
    upstream = await running.upstream()
    assert await exchange(upstream, b"hello") == b"hello"
    for line in (b"CONNECT %d\n", b" CONNECT %d\n", b"0 CONNECT %d\n", b"LIST\n", b"0 LIST\n"):
        preamble = line.replace(b"%d", str(running.port).encode())
        assert await exchange(replace(upstream, preamble=preamble), b"hello") == b""


async def test_ports_of_codehub_are_refused_by_the_adapter_and_by_the_agent(running: Running) -> None:
    upstream = await running.upstream()
    for port in (IDE_PORT, AGENT_PORT, RELAY_PORT):
        with pytest.raises(PortUnavailable, match=str(port)):
            await running.harness.instances.find_port(running.workspace_id, port)
        own = upstream.preamble.replace(str(running.port).encode(), str(port).encode())
        assert await exchange(replace(upstream, preamble=own), b"GET / HTTP/1.1\r\n\r\n") == b""
    listed = {each.port for each in await running.harness.instances.list_ports(running.workspace_id)}
    assert listed == {running.port}, "neither ours nor Docker's name server"


async def test_an_image_without_an_agent_says_so() -> None:
    build(WITHOUT_AGENT, "tiny-ide.Dockerfile", "AGENT_PORT=")
    async with opened_docker_harness() as harness:
        workspace_id = await start(harness, WITHOUT_AGENT)
        with pytest.raises(PortUnavailable, match=NO_AGENT):
            await harness.instances.find_port(workspace_id, 3000)
        with pytest.raises(PortUnavailable, match=NO_AGENT):
            await harness.instances.list_ports(workspace_id)
