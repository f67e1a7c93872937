"""Providers of instances, and what a test can do to the world of each."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from aiodocker import Docker

import testkit
from codehub.adapters.docker.engine import open_engine
from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.options import Limits
from codehub.adapters.docker.volumes import DockerVolumes
from codehub.adapters.local.ides import Ide
from codehub.adapters.local.instances import LocalInstances, Timeouts
from codehub.adapters.local.processes import find_processes, root_processes
from codehub.adapters.local.root import SENTINEL, LocalRoot
from codehub.adapters.local.volumes import LocalVolumes
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.naming import container_name
from codehub.instance_egress import EgressAccess
from codehub.ports import Instances, Upstream, Volumes
from codehub.unix_sockets import connectable
from testkit.docker_engine import (
    JOB_IMAGE,
    UNREACHABLE_URL,
    Engine,
    build,
    docker,
    need_docker,
    opened_engine,
)
from testkit.fakes import IMAGE, NEVER_READY_IMAGE, FakeInstances, FakeVolumes, FakeWorld
from testkit.waiting import DEADLINE_SECONDS

TINY_IDE = Path(testkit.__file__).with_name("tiny_ide.py")
# Enough for a loaded machine; only a broken provider uses it up.
PATIENCE = Timeouts(start=60, stop=30, kill=30, health=10)


class InstanceHarness(Protocol):
    @property
    def instances(self) -> Instances: ...

    @property
    def volumes(self) -> Volumes: ...

    def kill(self, workspace_id: WorkspaceId) -> None:
        """Kill the IDE without the provider."""

    def hang(self, workspace_id: WorkspaceId) -> None:
        """Freeze the IDE; it stays alive."""

    def resume(self, workspace_id: WorkspaceId) -> None:
        """Let the frozen IDE continue."""

    def with_short_timeouts(self) -> Instances:
        """Return the same provider with a short timeout for an IDE that does not respond."""

    def reconfigure(self) -> None:
        """Change what a start of the default image uses."""

    def count(self, workspace_id: WorkspaceId) -> int:
        """Return how many IDEs are running."""

    def make_unreachable(self) -> None:
        """Make the provider unreachable."""

    async def listen(self, workspace_id: WorkspaceId) -> int:
        """Let a program in the instance echo what it receives on loopback; return its port."""


class FakeHarness:
    def __init__(self) -> None:
        self.world = FakeWorld(start_seconds=DEADLINE_SECONDS)
        self.instances = FakeInstances(self.world)
        self.volumes = FakeVolumes(self.world)
        self.servers: list[asyncio.Server] = []

    def kill(self, workspace_id: WorkspaceId) -> None:
        self.world.instances[workspace_id].alive = False

    def hang(self, workspace_id: WorkspaceId) -> None:
        self.world.instances[workspace_id].answers = False

    def resume(self, workspace_id: WorkspaceId) -> None:
        self.world.instances[workspace_id].answers = True

    def with_short_timeouts(self) -> Instances:
        self.world.start_seconds = 0
        return self.instances

    def reconfigure(self) -> None:
        self.world.configuration = {"memory": "4 GiB"}

    def count(self, workspace_id: WorkspaceId) -> int:
        instance = self.world.instances.get(workspace_id)
        return int(instance is not None and instance.alive)

    def make_unreachable(self) -> None:
        self.world.down |= {Resource.CONTAINER, Resource.VOLUME}

    async def listen(self, workspace_id: WorkspaceId) -> int:
        self.servers.append(server := await asyncio.start_server(_echo, "127.0.0.1", 0))
        port: int = server.sockets[0].getsockname()[1]
        self.world.instances[workspace_id].ports[port] = "echo"
        return port

    def close(self) -> None:
        for server in self.servers:
            server.close()


def tiny_ide(*flags: str) -> Ide:
    return Ide(
        command=(sys.executable, "-I", "-S", str(TINY_IDE), "{socket}", "/w/{id}/", *flags),
        health_path="/w/{id}/health",
        keep_prefix=True,
        environment={"TOKEN": "{token}"},
        headers=(("Authorization", "token {token}"),),
        visible=(Path(sys.prefix), Path(sys.base_prefix), TINY_IDE),
    )


IDES = {IMAGE: tiny_ide(), NEVER_READY_IMAGE: tiny_ide("mute"), "deaf": tiny_ide("deaf")}
# The first one is the default.
OTHER_IDES = {"other": tiny_ide(), **IDES}
HASTY = Timeouts(start=1, stop=0.2, kill=30, health=0.5)


class LocalHarness:
    def __init__(self, path: Path, *, sandboxed: bool, timeouts: Timeouts = PATIENCE) -> None:
        self.root = LocalRoot.at(path)
        self.root.prepare()
        self.sandboxed = sandboxed
        self.instances = LocalInstances(path, ides=IDES, sandboxed=sandboxed, timeouts=timeouts)
        self.volumes = LocalVolumes(path)

    def kill(self, workspace_id: WorkspaceId) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while pids := self.pids(workspace_id):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            assert time.monotonic() < deadline

    def hang(self, workspace_id: WorkspaceId) -> None:
        for pid in self.pids(workspace_id):
            os.kill(pid, signal.SIGSTOP)

    def resume(self, workspace_id: WorkspaceId) -> None:
        for pid in self.pids(workspace_id):
            os.kill(pid, signal.SIGCONT)

    def with_short_timeouts(self) -> Instances:
        return LocalInstances(self.root.path, ides=IDES, sandboxed=self.sandboxed, timeouts=HASTY)

    def reconfigure(self) -> None:
        self.instances = LocalInstances(
            self.root.path, ides=OTHER_IDES, sandboxed=self.sandboxed, timeouts=PATIENCE
        )

    def count(self, workspace_id: WorkspaceId) -> int:
        return len(root_processes(find_processes(self.root.marker(workspace_id))))

    def pids(self, workspace_id: WorkspaceId) -> list[int]:
        return [member.pid for member in find_processes(self.root.marker(workspace_id))]

    def make_unreachable(self) -> None:
        (self.root.path / SENTINEL).unlink()

    async def listen(self, workspace_id: WorkspaceId) -> int:
        return int(await ask(await self.instances.find_upstream(workspace_id), workspace_id, "listen"))

    async def clean_up(self) -> None:
        """Kill all processes that the test left."""
        self.root.prepare()
        for directory in self.root.instances.iterdir():
            await self.instances.stop(WorkspaceId(directory.name))


class DockerHarness:
    def __init__(self, engine: Engine, dead: Docker, **changes: object) -> None:
        build(IMAGE, "tiny-ide.Dockerfile")
        build(NEVER_READY_IMAGE, "tiny-ide.Dockerfile", "FLAG=mute")
        self.engine = engine
        self.dead = dead
        self.options = engine.with_options(default_image=IMAGE, **changes)
        self.instances = DockerInstances(engine.client, self.options)
        self.volumes = DockerVolumes(engine.client, self.options)

    def kill(self, workspace_id: WorkspaceId) -> None:
        docker("kill", container_name(workspace_id))

    def hang(self, workspace_id: WorkspaceId) -> None:
        docker("pause", container_name(workspace_id))

    def resume(self, workspace_id: WorkspaceId) -> None:
        docker("unpause", container_name(workspace_id))

    def with_short_timeouts(self) -> Instances:
        timeouts = replace(self.options.timeouts, start=1, stop=1, health=0.5)
        return DockerInstances(self.engine.client, replace(self.options, timeouts=timeouts))

    def reconfigure(self) -> None:
        self.options = replace(self.options, limits=Limits(pids=99))
        self.instances = DockerInstances(self.engine.client, self.options)

    def count(self, workspace_id: WorkspaceId) -> int:
        return self.engine.containers().count(container_name(workspace_id))

    def make_unreachable(self) -> None:
        self.instances = DockerInstances(self.dead, self.engine.options)
        self.volumes = DockerVolumes(self.dead, self.engine.options)

    async def listen(self, workspace_id: WorkspaceId) -> int:
        return int(await ask(await self.instances.find_upstream(workspace_id), workspace_id, "listen"))


@asynccontextmanager
async def opened_docker_harness(**changes: object) -> AsyncIterator[DockerHarness]:
    """Open a harness whose options are those of the engine with these changes."""
    need_docker(JOB_IMAGE)
    async with opened_engine() as engine, open_engine(UNREACHABLE_URL) as dead:
        yield DockerHarness(engine, dead, **changes)


def no_gateway(directory: Path) -> EgressAccess:
    """Return a way out for containers without a network, but nobody listens there."""
    return EgressAccess(directory / "egress" / "gateway.sock", "key")


async def ask(upstream: Upstream | None, workspace_id: WorkspaceId, path: str) -> str:
    """Return the response of the tiny IDE below the path of its workspace."""
    return await fetch(upstream, f"/w/{workspace_id}/{path}")


async def fetch(upstream: Upstream | None, path: str) -> str:
    """Return the response of the tiny IDE."""
    assert upstream is not None
    reader, writer = await connect(upstream)
    headers = "".join(f"{name}: {value}\r\n" for name, value in upstream.headers)
    writer.write(f"GET {path} HTTP/1.1\r\n{headers}\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer.partition("\r\n\r\n")[2]


async def exchange(upstream: Upstream | None, message: bytes) -> bytes:
    """Return what comes back on a connection; nothing if it is refused or closed."""
    assert upstream is not None
    try:
        reader, writer = await connect(upstream)
    except ConnectionRefusedError:
        return b""
    try:
        writer.write(upstream.preamble + message)
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await reader.read(len(message))
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


async def connect(upstream: Upstream) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if not upstream.host.startswith("/"):
        return await asyncio.open_connection(upstream.host, upstream.port)
    with connectable(upstream.host) as path:
        return await asyncio.open_unix_connection(path)


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
