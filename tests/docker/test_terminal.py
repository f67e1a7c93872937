"""From a terminal in a container nothing of others can be reached; on the host, all of it can."""

import asyncio
import json
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from codehub.adapters.docker.gateway import prepare_gateway
from codehub.adapters.docker.instances import DockerInstances
from codehub.domain.conditions import WorkspaceId
from codehub.instance_egress import EgressAccess
from codehub.ports import InstanceRequest
from testkit.docker_engine import docker
from testkit.fakes import IMAGE
from tests.contracts.instance_harness import DockerHarness, ask, no_gateway, opened_docker_harness
from tests.docker.container_attempts import OF_DOCKER
from tests.docker.container_attempts import __file__ as container_file
from tests.docker.test_isolation import listening
from tests.integration.sandbox_attempts import ATTEMPTS as COMMON
from tests.integration.sandbox_attempts import __file__ as common_file

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = (Path(common_file), Path(container_file))
# Only local instances have a lock.
ATTEMPTS = {**COMMON, **OF_DOCKER}.keys() - {"inherit the lock of the instance"}
# What a bridge gives: the internet, and the host itself.
OPEN_WITH_A_NETWORK = {"find a route to another network", "connect to a server on all addresses of the host"}
# Parts of the kernel that the filters of older engines leave open.
UP_TO_THE_ENGINE = {"open a socket to the host of a virtual machine", "make an io_uring"}


@dataclass(frozen=True)
class Machine:
    """A machine with a workspace on a network, one without any, and a neighbor."""

    directory: Path
    harness: DockerHarness
    without_network: DockerInstances
    egress: EgressAccess
    neighbor: WorkspaceId

    async def attempt_from(self, instances: DockerInstances) -> set[str]:
        """Start a workspace, try everything from inside, and return what succeeded."""
        workspace_id = await self._start(instances)
        for program in PROGRAMS:
            shutil.copy(program, self.harness.engine.home(workspace_id))
        with self._targets(workspace_id, "/home/coder") as targets:
            words = ("python3", "-S", f"/home/coder/{PROGRAMS[1].name}", json.dumps(targets))
            upstream = await instances.find_upstream(workspace_id)
            return set(
                json.loads(await ask(upstream, workspace_id, f"run/{chr(0).join(words).encode().hex()}"))
            )

    async def attempt_from_host(self) -> set[str]:
        """Try the same on the host, as its root."""
        workspace_id = await self._start(self.harness.instances)
        for program in PROGRAMS:
            shutil.copy(program, self.directory)
        with self._targets(workspace_id, str(self.directory)) as targets:
            command = (sys.executable, str(self.directory / PROGRAMS[1].name), json.dumps(targets))
            run = await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, text=True)
            return set(json.loads(run.stdout))

    async def _start(self, instances: DockerInstances) -> WorkspaceId:
        workspace_id = WorkspaceId(str(uuid.uuid4()))
        await self.harness.volumes.provision(workspace_id)
        await instances.start(InstanceRequest(workspace_id, IMAGE), lambda _: None)
        return workspace_id

    @contextmanager
    def _targets(self, own: WorkspaceId, scratch: str) -> Iterator[dict[str, str]]:
        inspect, home = self.harness.engine.inspect, self.harness.engine.home(self.neighbor)
        (home / "diary").write_text("secret")
        credentials = self.directory / "credentials.json"
        credentials.write_text("secret")
        root = Path(docker("info", "--format", "{{.DockerRootDir}}"))
        [network] = inspect(self.neighbor)["NetworkSettings"]["Networks"].values()
        abstract = f"codehub-test-{secrets.token_hex(8)}"
        sockets = self.harness.options.sockets
        ide = Path(sockets.ide_socket_of(self.neighbor))
        sockets.prepare(self.neighbor)
        prepare_gateway(self.egress)
        ide.unlink(missing_ok=True)
        with (
            listening("127.0.0.1") as port,
            listening("0.0.0.0") as host_port,  # noqa: S104 (a careless server)
            socket.socket(socket.AF_UNIX) as on_host,
            socket.socket(socket.AF_UNIX) as of_neighbor,
        ):
            for server, address in ((on_host, f"\0{abstract}"), (of_neighbor, str(ide))):
                server.bind(address)
                server.listen()
            yield {
                "home": str(home),
                "credentials": str(credentials),
                "state": str(root / "containers" / inspect(own)["Id"] / "config.v2.json"),
                "pid": str(inspect(self.neighbor)["State"]["Pid"]),
                "secret": f"CODEHUB_WORKSPACE_ID={self.neighbor}",
                "socket": str(ide),
                "abstract": abstract,
                "port": str(port),
                "lock": "nothing",
                "scratch": scratch,
                "engine": "/var/run/docker.sock",
                "neighbor": network["IPAddress"],
                "host": network["Gateway"],
                "host_port": str(host_port),
                "gateway": str(self.egress.socket.parent)
                if scratch == str(self.directory)
                else "/run/codehub/egress",
            }


@pytest.fixture
async def machine() -> AsyncIterator[Machine]:
    directory = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
    egress = no_gateway(directory)
    async with opened_docker_harness() as harness:
        without_network, published = (
            DockerInstances(harness.engine.client, harness.engine.with_options(**changes))
            for changes in ({"egress": egress}, {"publish_ports": True})
        )
        machine = Machine(directory, harness, without_network, egress, WorkspaceId(str(uuid.uuid4())))
        await harness.volumes.provision(machine.neighbor)
        # It listens on its address too, so that there is something to reach.
        await published.start(InstanceRequest(machine.neighbor, IMAGE), lambda _: None)
        yield machine
    shutil.rmtree(directory)


async def test_nothing_of_others_is_reached_from_a_container(machine: Machine) -> None:
    assert await machine.attempt_from_host() == ATTEMPTS
    for instances, expected in (
        (machine.without_network, set()),
        (machine.harness.instances, OPEN_WITH_A_NETWORK),
    ):
        assert await machine.attempt_from(instances) - UP_TO_THE_ENGINE == expected


def test_the_documentation_lists_every_attempt() -> None:
    rows = (REPOSITORY / "docs" / "security.md").read_text().splitlines()
    for name in ATTEMPTS - UP_TO_THE_ENGINE:
        assert f"| {name} | no | {'yes' if name in OPEN_WITH_A_NETWORK else 'no'} |" in rows
    for name in UP_TO_THE_ENGINE:
        assert f"| {name} | up to the engine | up to the engine |" in rows
