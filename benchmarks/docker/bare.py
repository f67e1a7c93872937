"""The bare engine, and CodeHub's adapter without the control plane."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiodocker.containers import DockerContainer

from benchmarks.docker.testbed import Testbed
from benchmarks.instances.contestants import START_SECONDS, Failed
from codehub.adapters.docker.containers import ContainerInfo, instance_configuration, with_secrets
from codehub.adapters.docker.engine import translate_change_errors
from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.options import DockerOptions
from codehub.adapters.docker.volumes import DockerVolumes
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.states import Operation
from codehub.health import is_healthy
from codehub.ports import InstanceRequest
from testkit.rows import new_workspace_id

LAUNCH = "create and start return"
# Short enough to notice at once, long enough not to slow the IDE down.
POLL_SECONDS = 0.02
POLLS_PER_INSPECTION = 25
HEALTH_SECONDS = 2.0
Homes = dict[tuple[str, int], WorkspaceId]


@dataclass
class BareEngine:
    """`create`, `start`, `stop` and `rm` with the same configuration as CodeHub's containers."""

    testbed: Testbed
    options: DockerOptions
    homes: Homes = field(default_factory=dict)
    launch_seconds: dict[WorkspaceId, float] = field(default_factory=dict)

    async def prepare(self, reference: str, number: int) -> None:
        self.homes[reference, number] = await _make_home(self.testbed, self.options)

    async def start(self, reference: str, number: int) -> None:
        workspace_id, began = self.homes[reference, number], time.perf_counter()
        image, network_id = self.testbed.images[reference], self.testbed.network_id
        request = InstanceRequest(workspace_id, reference)
        configuration = instance_configuration(request, image, network_id, self.options)
        configuration = with_secrets(configuration, workspace_id, image.traits, self.options)
        create = self.testbed.engine.containers.create
        with _translated():
            self.options.sockets.prepare(workspace_id)
            container = await create(configuration, name=self._name(workspace_id))
            await container.start()
            self.launch_seconds[workspace_id] = time.perf_counter() - began
            path = image.traits.health_path.replace("{id}", workspace_id)
            await self._until_healthy(container, self.options.sockets.ide_socket_of(workspace_id), path)

    async def stop(self, reference: str, number: int) -> None:
        workspace_id = self.homes[reference, number]
        container = self.testbed.engine.containers.container(self._name(workspace_id))
        with _translated():
            await container.stop(t=self.options.timeouts.stop)
            await container.delete()
            self.options.sockets.remove(workspace_id)

    async def step_seconds(self, reference: str, number: int, operation: Operation) -> Mapping[str, float]:
        if operation is Operation.STARTING:
            return {LAUNCH: self.launch_seconds[self.homes[reference, number]]}
        return {}

    def _name(self, workspace_id: WorkspaceId) -> str:
        """Return a name that the running CodeHub does not take for a workspace."""
        return f"{self.testbed.name}-{workspace_id}"

    async def _until_healthy(self, container: DockerContainer, socket: str, path: str) -> None:
        async with asyncio.timeout(START_SECONDS):
            while (info := ContainerInfo.from_inspect(await container.show())).running:
                for _ in range(POLLS_PER_INSPECTION):
                    if await is_healthy(socket, path, info.headers, HEALTH_SECONDS):
                        return
                    await asyncio.sleep(POLL_SECONDS)
        raise Failed("the container has exited")


@dataclass
class OurAdapter:
    """CodeHub's Docker adapter, called directly."""

    testbed: Testbed
    options: DockerOptions
    homes: Homes = field(default_factory=dict)

    async def prepare(self, reference: str, number: int) -> None:
        self.homes[reference, number] = await _make_home(self.testbed, self.options)

    async def start(self, reference: str, number: int) -> None:
        request = InstanceRequest(self.homes[reference, number], reference)
        with _translated():
            await self._instances().start(request, lambda _: None)

    async def stop(self, reference: str, number: int) -> None:
        with _translated():
            await self._instances().stop(self.homes[reference, number])

    async def step_seconds(self, _reference: str, _number: int, _operation: Operation) -> Mapping[str, float]:
        return {}

    def _instances(self) -> DockerInstances:
        return DockerInstances(self.testbed.engine, self.options)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        with translate_change_errors():
            yield
    except (Permanent, Transient) as error:
        raise Failed(str(error)) from error


async def _make_home(testbed: Testbed, options: DockerOptions) -> WorkspaceId:
    workspace_id = new_workspace_id()
    await DockerVolumes(testbed.engine, options).provision(workspace_id)
    return workspace_id
