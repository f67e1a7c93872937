"""A workspace can reach the internet, but no other workspace and nothing of the control plane."""

import json
import socket
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psutil
import pytest

from codehub.adapters.docker.instances import DockerInstances
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import container_name
from codehub.domain.states import ErrorReason
from codehub.embedded.data_dir import read_json
from codehub.ports import InstanceRequest, Upstream
from testkit.deployment import Servers
from testkit.docker_engine import build, docker
from testkit.fakes import IMAGE
from tests.contracts.instance_harness import DockerHarness, ask, opened_docker_harness
from tests.docker.networks import own_network

LOOPBACK = "127.0.0.1"
IDE_PORT = 8080
OPEN_IMAGE = "codehub-test-open-ide"
SERVERS = {"postgres", "redis", "s3.s3", "temporal"}
# Tries all of them at once, because dropped packets cost the whole timeout.
PROBE = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from socket import create_connection

def reaches(address):
    try:
        with create_connection(tuple(address), timeout=3) as connection:
            connection.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
    except OSError:
        return False
    return True

addresses = json.loads(sys.argv[1])
with ThreadPoolExecutor(len(addresses)) as pool:
    print(json.dumps(list(pool.map(reaches, addresses))))
"""
Address = tuple[str, int]


@dataclass(frozen=True)
class Neighbor:
    """A running workspace and its addresses; its port is 0 if it is reached through a socket."""

    workspace_id: WorkspaceId
    address: str
    gateway: str
    published_port: int

    def reached(self, *addresses: Address) -> set[Address]:
        """Return the addresses that accept a connection from inside."""
        tried = sorted(addresses)
        arguments = (container_name(self.workspace_id), "python3", "-c", PROBE, json.dumps(tried))
        answers = json.loads(docker("exec", *arguments))
        return {each for each, answer in zip(tried, answers, strict=True) if answer}


@pytest.fixture
async def harness() -> AsyncIterator[DockerHarness]:
    async with opened_docker_harness() as harness:
        yield harness


@pytest.fixture
async def published() -> AsyncIterator[DockerHarness]:
    async with opened_docker_harness(publish_ports=True) as harness:
        yield harness


async def start_neighbor(harness: DockerHarness) -> Neighbor:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    await harness.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    networks = harness.engine.inspect(workspace_id)["NetworkSettings"]["Networks"]
    [network] = networks.values()
    upstream = await harness.instances.find_upstream(workspace_id)
    assert upstream is not None
    return Neighbor(workspace_id, network["IPAddress"], network["Gateway"], upstream.port)


@contextmanager
def listening(host: str) -> Iterator[int]:
    with socket.create_server((host, 0)) as server:
        yield server.getsockname()[1]


def own_addresses() -> set[str]:
    """Return the addresses of this machine."""
    interfaces = psutil.net_if_addrs().values()
    return {each.address for addresses in interfaces for each in addresses if each.family == socket.AF_INET}


async def test_no_workspace_reaches_another(published: DockerHarness) -> None:
    one, other = await start_neighbor(published), await start_neighbor(published)
    # It exists, and this machine reaches it.
    known = await published.instances.find_upstream(other.workspace_id)
    assert known is not None
    there = replace(known, host=other.address, port=IDE_PORT)
    assert await ask(there, other.workspace_id, "health") == "ok"
    itself = (LOOPBACK, IDE_PORT)
    ports = (one.published_port, other.published_port)
    on_this_machine = {(host, port) for host in own_addresses() for port in ports}
    assert one.reached(itself, (other.address, IDE_PORT), *on_this_machine) == {itself}


async def test_users_of_the_machine_reach_a_published_port_but_not_the_ide(published: DockerHarness) -> None:
    one, other = await start_neighbor(published), await start_neighbor(published)
    upstreams = [await published.instances.find_upstream(each.workspace_id) for each in (one, other)]
    own, foreign = (each.headers for each in upstreams if each is not None)
    assert own != foreign
    there = Upstream(LOOPBACK, one.published_port, keep_prefix=True)
    for headers in ((), foreign):
        assert await ask(replace(there, headers=headers), one.workspace_id, "environ") == ""
    environment = await ask(replace(there, headers=own), one.workspace_id, "environ")
    assert "CODEHUB_WORKSPACE_ID" in environment


async def test_an_instance_without_a_secret_keeps_working(published: DockerHarness) -> None:
    """It was started by an earlier release, or from an image that knows no secret."""
    build(OPEN_IMAGE, "tiny-ide.Dockerfile", "SECRET_VARIABLE=")
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await published.volumes.provision(workspace_id)
    await published.instances.start(InstanceRequest(workspace_id, OPEN_IMAGE), lambda _: None)
    upstream = await published.instances.find_upstream(workspace_id)
    assert upstream is not None
    assert upstream.headers == ()
    # The attack of the test above succeeds here.
    assert "CODEHUB_WORKSPACE_ID" in await ask(upstream, workspace_id, "environ")


async def test_no_workspace_reaches_the_control_plane(harness: DockerHarness, servers: Servers) -> None:
    ports = read_json(servers.stack.data.ports)["ports"]
    assert ports.keys() > SERVERS
    neighbor = await start_neighbor(harness)
    assert neighbor.gateway in own_addresses()
    with listening(LOOPBACK) as api_port, listening("0.0.0.0") as careless_port:  # noqa: S104 (that is the point)
        inner = {(host, port) for host in own_addresses() for port in (*ports.values(), api_port)}
        for port in (*(ports[server] for server in SERVERS), api_port):
            socket.create_connection((LOOPBACK, port)).close()
        # This one shows that the probe would have reached the others.
        careless = (neighbor.gateway, careless_port)
        assert neighbor.reached(careless, *inner) == {careless}


async def start_on(harness: DockerHarness, network: str) -> WorkspaceId:
    instances = DockerInstances(harness.engine.client, harness.engine.with_options(network=network))
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    await instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    return workspace_id


async def test_a_network_without_isolation_is_refused(harness: DockerHarness) -> None:
    with own_network(harness.engine) as name:
        docker("network", "create", name)
        with pytest.raises(Transient, match=f"The network {name} lets workspaces reach each other") as caught:
            await start_on(harness, name)
        assert caught.value.reason is ErrorReason.ACTION_FAILED
        assert harness.engine.containers("--all") == []


async def test_the_network_is_created_with_isolation(harness: DockerHarness) -> None:
    with own_network(harness.engine) as name:
        workspace_id = await start_on(harness, name)
        [network] = json.loads(docker("network", "inspect", name))
        assert network["Options"] == {"com.docker.network.bridge.enable_icc": "false"}
        assert [*harness.engine.inspect(workspace_id)["NetworkSettings"]["Networks"]] == [name]
