"""Only CodeHub gets into a container: no ordinary user of the host does, unless ports are published."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest

from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.sockets import SocketDirectory
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.states import ErrorReason
from codehub.ports import InstanceRequest
from testkit.docker_engine import build
from testkit.fakes import IMAGE
from testkit.ordinary_user import UID, as_ordinary_user
from tests.contracts.instance_harness import DockerHarness, ask, no_gateway, opened_docker_harness
from tests.docker.test_containers import label_image, new_workspace_id
from tests.docker.test_isolation import OPEN_IMAGE

FIXED_IMAGE = "codehub-test-no-socket"
IDE_PORT = 8080
# Prints the addresses at which the IDE of this workspace responds; other tests open ports too.
CONNECT = """
import json, socket, sys

def responds(address):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    try:
        with socket.socket(family) as connection:
            connection.settimeout(5)
            connection.connect(address if isinstance(address, str) else tuple(address))
            connection.sendall(f"GET /w/{workspace}/environ HTTP/1.1\\r\\n\\r\\n".encode())
            return workspace.encode() in b"".join(iter(lambda: connection.recv(65536), b""))
    except OSError:
        return False

workspace, addresses = sys.argv[1], json.loads(sys.argv[2])
print(json.dumps([each for each in addresses if responds(each)]))
"""
Address = list[str | int] | str


def listening_ports() -> set[int]:
    found = psutil.net_connections("tcp")
    return {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN and each.laddr}


@dataclass(frozen=True)
class Host:
    """A host on which one workspace runs since it was first examined."""

    harness: DockerHarness
    workspace_id: WorkspaceId
    listened_before: set[int] = field(default_factory=listening_ports)

    def addresses(self) -> list[Address]:
        """Return where the IDE might be: new ports of the host, its own address, its socket."""
        new = sorted(listening_ports() - self.listened_before)
        networks = self.harness.engine.inspect(self.workspace_id)["NetworkSettings"]["Networks"].values()
        own = [each["IPAddress"] for each in networks if each["IPAddress"]]
        found: list[Address] = [["127.0.0.1", port] for port in new]
        return [*found, *([each, IDE_PORT] for each in own), self.socket]

    @property
    def socket(self) -> str:
        return self.harness.options.sockets.ide_socket_of(self.workspace_id)

    def reached(self, *, as_root: bool = False) -> list[Address]:
        """Return the addresses at which the IDE responds to an ordinary user, or to root."""
        command = (sys.executable, "-c", CONNECT, self.workspace_id, json.dumps(self.addresses()))
        chosen = command if as_root else as_ordinary_user(command)
        run = subprocess.run(chosen, check=True, capture_output=True, text=True)
        found: list[Address] = json.loads(run.stdout)
        return found


async def start(harness: DockerHarness, image_ref: str = OPEN_IMAGE) -> Host:
    """Start an IDE that asks for no secret, so that only its whereabouts protect it."""
    build(OPEN_IMAGE, "tiny-ide.Dockerfile", "SECRET_VARIABLE=")
    host = Host(harness, new_workspace_id())
    await harness.volumes.provision(host.workspace_id)
    await harness.instances.start(InstanceRequest(host.workspace_id, image_ref), lambda _: None)
    return host


@pytest.fixture(params=["gateway", "direct"])
async def host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Host]:
    """Return a host without published ports."""
    egress = no_gateway(tmp_path) if request.param == "gateway" else None
    async with opened_docker_harness(egress=egress) as harness:
        yield await start(harness)


@pytest.fixture
async def published() -> AsyncIterator[Host]:
    async with opened_docker_harness(publish_ports=True) as harness:
        yield await start(harness)


async def test_an_ordinary_user_of_the_host_reaches_no_ide(host: Host) -> None:
    assert host.reached() == []
    # It is there, and responds to whoever may enter its directory.
    assert host.reached(as_root=True) == [host.socket]


async def test_an_ordinary_user_of_the_host_reaches_an_ide_that_is_published(published: Host) -> None:
    upstream = await published.harness.instances.find_upstream(published.workspace_id)
    assert upstream is not None
    [port, address] = published.reached()
    assert port == ["127.0.0.1", upstream.port]
    # Docker's network leads there too.
    assert address[1] == IDE_PORT


async def test_only_the_directory_keeps_an_ordinary_user_out(host: Host) -> None:
    assert host.reached() == []
    os.chown(host.harness.options.sockets.path, UID, UID)
    assert host.reached() == [host.socket]


async def test_an_image_whose_ide_needs_a_port_is_refused(tmp_path: Path) -> None:
    label_image(IMAGE, "codehub.io/socket-arguments=", FIXED_IMAGE)
    for egress in (None, no_gateway(tmp_path)):
        async with opened_docker_harness(egress=egress) as harness:
            with pytest.raises(Permanent, match="its IDE needs a port"):
                await start(harness, FIXED_IMAGE)
            assert harness.engine.containers("--all") == []
    async with opened_docker_harness(publish_ports=True) as harness:
        host = await start(harness, FIXED_IMAGE)
        assert harness.engine.inspect(host.workspace_id)["Config"]["Image"] == FIXED_IMAGE


async def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sockets = SocketDirectory(tmp_path / "file" / "sockets")
    async with opened_docker_harness(sockets=sockets) as harness:
        with pytest.raises(Transient, match=f"cannot use {sockets.path} for sockets") as caught:
            await start(harness)
    assert caught.value.reason is ErrorReason.ACTION_FAILED


async def test_an_engine_with_another_kernel_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Docker Desktop's, which runs in a virtual machine."""
    other = os.uname_result((*os.uname()[:2], "6.6.0-elsewhere", *os.uname()[3:]))
    monkeypatch.setattr(os, "uname", lambda: other)
    async with opened_docker_harness(egress=no_gateway(tmp_path)) as harness:
        with pytest.raises(Permanent, match=r"is not on this machine.*CODEHUB_DOCKER_PUBLISH_PORTS=true"):
            await start(harness)
        assert harness.engine.containers("--all") == []


async def test_a_container_with_a_published_port_is_reached_through_it_until_its_next_start(
    published: Host, tmp_path: Path
) -> None:
    """An earlier release published the port; this one does not."""
    workspace_id, engine = published.workspace_id, published.harness.engine
    now = replace(published.harness.options, publish_ports=False, egress=no_gateway(tmp_path))
    instances = DockerInstances(engine.client, now)
    upstream = await instances.find_upstream(workspace_id)
    assert upstream is not None
    assert upstream.port
    assert await ask(upstream, workspace_id, "health") == "ok"
    assert await instances.list_all() == {workspace_id: ContainerFact.READY}
    assert await instances.list_ports(workspace_id) == []
    assert {"network", "other settings"} <= set((await instances.find_outdated())[workspace_id])
    # A start leaves it alone, because it runs.
    await instances.start(InstanceRequest(workspace_id, OPEN_IMAGE), lambda _: None)
    assert await instances.find_upstream(workspace_id) == upstream
    await instances.stop(workspace_id)
    await instances.start(InstanceRequest(workspace_id, OPEN_IMAGE), lambda _: None)
    moved = await instances.find_upstream(workspace_id)
    assert moved is not None
    assert moved.host == now.sockets.ide_socket_of(workspace_id)
    assert await instances.find_outdated() == {}
