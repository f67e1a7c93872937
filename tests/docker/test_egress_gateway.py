"""With the gateway, a workspace has no network: it reaches what its policy permits, and nothing else."""

import asyncio
import json
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.sockets import SocketDirectory
from codehub.adapters.docker.volumes import DockerVolumes
from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import EgressMode, EgressPolicy, parse_policy
from codehub.domain.naming import container_name
from codehub.ports import InstanceRequest, Upstream
from codehub.providers import docker_options_of
from codehub.settings import load_settings
from codehub.unix_sockets import connectable
from testkit import postgres
from testkit.docker_engine import WORKSPACE_IMAGE, Engine, docker, need_docker, opened_engine
from testkit.fakes import IMAGE
from testkit.internet import VICTIM_PORT, WEB_PORT, Internet, running_internet
from testkit.waiting import until
from tests.contracts.instance_harness import DockerHarness, connect, no_gateway, opened_docker_harness
from tests.docker.test_isolation import listening, own_addresses, start_neighbor
from tests.egress.clients import KEY, choose, new_workspace
from tests.egress.conftest import RunningGateway, running_gateway

SITE = f"http://site.example:{WEB_PORT}/"
OTHER = f"http://other.example:{WEB_PORT}/"
DIRECTLY = "--noproxy '*'"


@dataclass(frozen=True)
class Workspace:
    """A running workspace without a network."""

    workspace_id: WorkspaceId
    gateway: RunningGateway
    instances: DockerInstances
    sockets: SocketDirectory
    engine: Engine

    def run(self, script: str) -> tuple[int, str]:
        command = ("docker", "exec", container_name(self.workspace_id), "bash", "-c", script)
        run = subprocess.run(command, check=False, capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    async def fetch(self, url: str, options: str = "") -> str:
        return (await asyncio.to_thread(self.run, f"curl -sS -m 20 {options} {url}"))[1]

    async def upstream(self) -> Upstream:
        found = await self.instances.find_upstream(self.workspace_id)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Internet]:
    with running_internet(tmp_path_factory.mktemp("internet")) as running:
        yield running


@pytest.fixture(scope="module")
async def gateway(
    internet: Internet, postgres_server: postgres.Server, migrated_template: str
) -> AsyncIterator[RunningGateway]:
    async with (
        postgres.new_database(postgres_server, migrated_template) as url,
        running_gateway(internet, url) as running,
    ):
        yield running


@pytest.fixture(scope="module")
async def workspace(gateway: RunningGateway) -> AsyncIterator[Workspace]:
    """Return a workspace with CodeHub's own image and the default settings."""
    need_docker(WORKSPACE_IMAGE)
    async with opened_engine() as engine:
        settings = {
            "CODEHUB_DOCKER_PROJECT": engine.options.project,
            "CODEHUB_DOCKER_SOCKETS": str(engine.options.sockets.path),
            "CODEHUB_DOCKER_START_SECONDS": "120",
            "CODEHUB_EGRESS_SOCKET": str(gateway.socket),
            "CODEHUB_EGRESS_KEY": KEY,
        }
        options = docker_options_of(load_settings(settings))
        instances = DockerInstances(engine.client, options)
        workspace_id = await new_workspace(gateway.database)
        await DockerVolumes(engine.client, options).provision(workspace_id)
        await instances.start(InstanceRequest(workspace_id, WORKSPACE_IMAGE), lambda _: None)
        yield Workspace(workspace_id, gateway, instances, options.sockets, engine)
        await instances.stop(workspace_id)
        assert list(options.sockets.path.iterdir()) == []


@contextmanager
def victim() -> Iterator[int]:
    """Listen on every address of this machine, as a careless server does."""
    with listening("0.0.0.0") as port:  # noqa: S104 (that is the point)
        yield port


async def test_the_ide_is_reached_through_a_socket(workspace: Workspace) -> None:
    upstream = await workspace.upstream()
    reader, writer = await connect(upstream)
    [(name, value)] = upstream.headers
    writer.write(f"GET / HTTP/1.1\r\nHost: x\r\n{name}: {value}\r\nConnection: close\r\n\r\n".encode())
    response = await reader.read()
    writer.close()
    # To its folder, and not to a sign-in.
    assert b"folder=/home/coder" in response


async def test_it_has_no_network_and_publishes_nothing(workspace: Workspace) -> None:
    container = workspace.engine.inspect(workspace.workspace_id)
    assert list(container["NetworkSettings"]["Networks"]) == ["none"]
    assert container["NetworkSettings"]["Ports"] == {}
    _, interfaces = workspace.run("cat /proc/net/dev")
    assert [line.split(":")[0].strip() for line in interfaces.splitlines() if ":" in line] == ["lo"]


async def test_the_host_and_other_workspaces_are_out_of_reach(workspace: Workspace) -> None:
    async with opened_docker_harness(publish_ports=True) as harness:
        neighbor = await start_neighbor(harness)
        with victim() as port:
            # Without the gateway, a workspace reaches it on the bridge.
            assert neighbor.reached((neighbor.gateway, port))
            targets = [(address, port) for address in sorted(own_addresses())]
            targets += [(neighbor.address, 8080), ("169.254.169.254", 80), ("10.9.8.7", VICTIM_PORT)]
            for options in (DIRECTLY, ""):
                urls = [f"http://{host}:{number}/" for host, number in targets]
                for url, text in zip(
                    urls, await asyncio.gather(*(workspace.fetch(url, options) for url in urls)), strict=True
                ):
                    # Refused by the gateway with a reason, or by the kernel for want of a route.
                    assert "curl: (7)" in text or "CodeHub:" in text, (url, options, text)


async def test_names_outside_are_reached_through_the_gateway_alone(workspace: Workspace) -> None:
    assert "outside 198.51.100.2" in await workspace.fetch(SITE)
    assert "outside" not in await workspace.fetch(SITE, DIRECTLY)
    assert "outside" not in await workspace.fetch(f"http://198.51.100.2:{WEB_PORT}/", DIRECTLY)


async def test_node_and_python_and_ssh_find_the_gateway(workspace: Workspace) -> None:
    node = f"fetch('{SITE}').then(response => response.text()).then(console.log)"
    assert "outside" in workspace.run(f'node -e "{node}"')[1]
    python = f"import urllib.request as r; print(r.urlopen('{SITE}').read())"
    assert "outside" in workspace.run(f'python3 -c "{python}"')[1]
    _, output = workspace.run(f"timeout 5 ssh -v -o StrictHostKeyChecking=no -p {WEB_PORT} git@site.example")
    assert "Executing proxy command: exec" in output
    # The web server echoes everything that is not HTTP, so this line has made the round trip.
    assert "remote software version OpenSSH" in output


@pytest.mark.parametrize(
    ("policy", "site"),
    [(EgressPolicy(EgressMode.NONE), False), (parse_policy(EgressMode.ALLOW_LIST, ["site.example"]), True)],
    ids=["none", "allow-list"],
)
async def test_a_policy_holds(workspace: Workspace, policy: EgressPolicy, site: bool) -> None:
    database = workspace.gateway.database
    assert "outside" in await workspace.fetch(OTHER)
    await choose(database, workspace.workspace_id, policy)

    async def is_in_force() -> bool:
        return "network policy of this workspace" in await workspace.fetch(OTHER)

    await until(is_in_force, "the policy is in force")
    assert ("outside" in await workspace.fetch(SITE)) == site
    await choose(database, workspace.workspace_id, None)

    async def is_lifted() -> bool:
        return "outside" in await workspace.fetch(OTHER)

    await until(is_lifted, "the policy is lifted")


async def test_the_token_is_not_in_the_environment_of_programs(workspace: Workspace) -> None:
    _, environment = workspace.run("tr '\\0' '\\n' < /proc/$(pgrep -f code-server/out/node/[e]ntry)/environ")
    assert "HTTP_PROXY=http://127.0.0.1:3128" in environment
    assert "CODEHUB-EGRESS" not in environment


def run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


async def test_a_symlink_in_place_of_the_socket_is_not_followed(workspace: Workspace) -> None:
    path = Path(workspace.sockets.ide_socket_of(workspace.workspace_id))
    target = workspace.gateway.socket
    workspace.run("cd /run/codehub/sockets && mv ide.sock kept && ln -s " + str(target) + " ide.sock")
    try:
        # Whoever follows it reaches another server.
        _, writer = await asyncio.open_unix_connection(str(path))
        writer.close()
        with pytest.raises(ConnectionRefusedError), connectable(str(path)):
            pass
        assert await workspace.instances.find_upstream(workspace.workspace_id) is None
    finally:
        workspace.run("cd /run/codehub/sockets && mv kept ide.sock")
    assert await workspace.instances.find_upstream(workspace.workspace_id)


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DockerHarness]:
    async with opened_docker_harness(egress=no_gateway(tmp_path)) as harness:
        yield harness


async def test_without_a_gateway_there_is_no_way_out(harness: DockerHarness) -> None:
    workspace_id = WorkspaceId(str(uuid.uuid4()))
    await harness.volumes.provision(workspace_id)
    await harness.instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
    script = f"import urllib.request as r; r.urlopen('{SITE}', timeout=10)"
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(("docker", "exec", container_name(workspace_id), "python3", "-c", script))
    assert "Remote end closed connection" in failed.value.stderr or "reset by peer" in failed.value.stderr
    mounts = json.loads(docker("inspect", "--format", "{{json .Mounts}}", container_name(workspace_id)))
    assert {each["Destination"]: each["RW"] for each in mounts} == {
        "/home/coder": True,
        "/run/codehub/sockets": True,
        "/run/codehub/egress": False,
    }
