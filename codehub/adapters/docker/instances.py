"""IDE instances as containers."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus

from aiodocker import Docker, DockerError
from aiodocker.containers import DockerContainer

from codehub.adapters.docker.containers import (
    LOOPBACK,
    Configuration,
    ContainerInfo,
    differences,
    instance_configuration,
    remove_container,
    stop_container,
    with_secrets,
)
from codehub.adapters.docker.engine import (
    ELSEWHERE,
    PUBLISH_INSTEAD,
    ignore_statuses,
    is_on_this_machine,
    translate_change_errors,
    translate_read_errors,
)
from codehub.adapters.docker.gateway import NO_NETWORK, prepare_gateway
from codehub.adapters.docker.images import ensure_image, find_image
from codehub.adapters.docker.network import ensure_network, find_network
from codehub.adapters.docker.options import CONFIGURATION_LABEL, DockerOptions
from codehub.adapters.docker.sockets import require_socket_arguments
from codehub.adapters.docker.volumes import require_mounted_volume, require_volume
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Permanent, Transient
from codehub.domain.naming import container_name
from codehub.domain.states import ErrorReason
from codehub.health import is_healthy
from codehub.instance_ports import NO_AGENT, OLD_AGENT, ask_for_ports, port_upstream
from codehub.ports import (
    ImageMissing,
    InstanceRequest,
    ListeningPort,
    Outdated,
    PortUnavailable,
    Progress,
    Report,
    Upstream,
)

POLL_SECONDS = 0.05
INSPECT_SECONDS = 0.5
HEALTH_CHECK_SECONDS = 0.02
LAUNCH_SECONDS = 60
HEALTH_CHECKS_AT_ONCE = 64
REPORTED_LINES = 10
REPORTED_LENGTH = 1500


class DockerInstances:
    """One container per workspace: container names are unique, so the name is the lock."""

    def __init__(self, engine: Docker, options: DockerOptions) -> None:
        self._engine = engine
        self._options = options
        self._health_checks = asyncio.Semaphore(HEALTH_CHECKS_AT_ONCE)

    async def observe(self, workspace_id: WorkspaceId) -> ContainerFact:
        with translate_read_errors():
            container = await self._inspect(workspace_id)
        return await self._fact(workspace_id, container)

    async def list_all(self) -> Mapping[WorkspaceId, ContainerFact]:
        with translate_read_errors():
            containers = await self._list()
        facts = await asyncio.gather(*(self._fact(each, info) for each, info in containers.items()))
        return dict(zip(containers, facts, strict=True))

    async def find_outdated(self, workspace_id: WorkspaceId | None = None) -> Outdated:
        with translate_read_errors():
            containers: Mapping[WorkspaceId, ContainerInfo | None] = (
                await self._list()
                if workspace_id is None
                else {workspace_id: await self._inspect(workspace_id)}
            )
            running = [
                (InstanceRequest(each, info.image_ref), info.configuration)
                for each, info in containers.items()
                if info and info.running and info.image_ref is not None
            ]
            return await self._compare(running) if running else {}

    async def start(self, request: InstanceRequest, report: Report) -> None:
        with translate_change_errors():
            await require_volume(self._engine, self._options, request.workspace_id)
            container = await self._inspect(request.workspace_id)
            if container is None or not container.is_reusable:
                wanted = await self._prepare(request)
                report(Progress("launch", unit="steps"))
                await self._launch(request.workspace_id, wanted)
            await self._wait_until_ready(request.workspace_id, report)

    async def pull(self, image_ref: str, report: Report) -> None:
        with translate_change_errors():
            await ensure_image(self._engine, self._options.resolve_image(image_ref), report)

    async def stop(self, workspace_id: WorkspaceId) -> None:
        container, timeouts = self._container(workspace_id), self._options.timeouts
        with translate_change_errors():
            await stop_container(container, timeouts.stop, timeouts.response)
            await self._remove(workspace_id)

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        with translate_read_errors():
            container = await self._inspect(workspace_id)
        if container is None or await self._fact(workspace_id, container) is not ContainerFact.READY:
            return None
        address, traits = self._address(workspace_id, container), container.traits
        host, port = (LOOPBACK, address) if isinstance(address, int) else (address, 0)
        return Upstream(host, port, traits.keep_prefix, container.headers, traits.ide)

    async def find_port(self, workspace_id: WorkspaceId, port: int) -> Upstream | None:
        container = await self._find_running(workspace_id)
        if container is None:
            return None
        host, agent_port = await self._find_agent(workspace_id, container)
        return port_upstream(host, agent_port, port, container.reserved_ports, container.secret)

    async def list_ports(self, workspace_id: WorkspaceId) -> Sequence[ListeningPort]:
        container = await self._find_running(workspace_id)
        if container is None:
            return ()
        host, agent_port = await self._find_agent(workspace_id, container)
        return await ask_for_ports(host, agent_port, container.secret)

    async def read_log(self, workspace_id: WorkspaceId, *, tail: int, follow: bool) -> AsyncIterator[bytes]:
        container = self._container(workspace_id)
        with translate_read_errors(), ignore_statuses(HTTPStatus.NOT_FOUND):
            if follow:
                async for text in container.log(stdout=True, stderr=True, tail=tail, follow=True):
                    yield text.encode()
            else:
                for text in await container.log(stdout=True, stderr=True, tail=tail):
                    yield text.encode()

    async def _prepare(self, request: InstanceRequest) -> Configuration:
        """Create what the container needs and return its configuration."""
        reference = self._options.resolve_image(request.image_ref)
        image = await find_image(self._engine, reference)
        if image is None:
            raise ImageMissing
        if not self._options.publish_ports:
            require_socket_arguments(reference, image.traits.socket_arguments)
            await self._prepare_sockets(request.workspace_id)
        network_id = await self._ensure_network()
        wanted = instance_configuration(request, image, network_id, self._options)
        return with_secrets(wanted, request.workspace_id, image.traits, self._options)

    async def _prepare_sockets(self, workspace_id: WorkspaceId) -> None:
        if not await is_on_this_machine(self._engine):
            raise Permanent(
                ErrorReason.ACTION_FAILED, f"Workspaces cannot start: {ELSEWHERE}; {PUBLISH_INSTEAD}."
            )
        try:
            await asyncio.to_thread(self._options.sockets.prepare, workspace_id)
        except OSError as error:
            path, reason = self._options.sockets.path, error.strerror
            message = (
                f"CodeHub cannot use {path} for sockets ({reason}); give it a directory of its own there."
            )
            raise Transient(ErrorReason.ACTION_FAILED, message) from error

    async def _ensure_network(self) -> str:
        if self._options.egress is None:
            return await ensure_network(self._engine, self._options.network)
        await asyncio.to_thread(prepare_gateway, self._options.egress)
        return NO_NETWORK

    async def _find_network(self) -> str | None:
        if self._options.egress is None:
            return await find_network(self._engine, self._options.network)
        return NO_NETWORK

    async def _remove(self, workspace_id: WorkspaceId) -> None:
        # Remove the sockets first, so that a container started concurrently keeps its own.
        await asyncio.to_thread(self._options.sockets.remove, workspace_id)
        await remove_container(self._container(workspace_id))

    async def _compare(self, running: Sequence[tuple[InstanceRequest, str]]) -> Outdated:
        """Return how each running container differs from the one that a start would create now."""
        network_id = await self._find_network() or ""
        references = {self._options.resolve_image(request.image_ref) for request, _ in running}
        images = {each: await find_image(self._engine, each) for each in references}
        found = {}
        for request, made_from in running:
            image = images[self._options.resolve_image(request.image_ref)]
            if image is not None:
                wanted = instance_configuration(request, image, network_id, self._options)
                found[request.workspace_id] = differences(made_from, wanted)
        return {each: changes for each, changes in found.items() if changes}

    async def _list(self) -> dict[WorkspaceId, ContainerInfo]:
        listed = await self._engine.containers.list(all=True, filters=json.dumps(self._options.filters))
        return {
            workspace_id: ContainerInfo.from_listing(each._container)  # noqa: SLF001 (aiodocker has no public access)
            for each in listed
            if (workspace_id := self._options.workspace_of(each["Labels"]))
            and f"/{container_name(workspace_id)}" in each["Names"]
        }

    def _container(self, workspace_id: WorkspaceId) -> DockerContainer:
        return self._engine.containers.container(container_name(workspace_id))

    async def _inspect(self, workspace_id: WorkspaceId) -> ContainerInfo | None:
        try:
            return ContainerInfo.from_inspect(await self._container(workspace_id).show())
        except DockerError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def _fact(self, workspace_id: WorkspaceId, container: ContainerInfo | None) -> ContainerFact:
        if container is None:
            return ContainerFact.ABSENT
        if not container.running:
            return ContainerFact.NOT_READY
        address = self._address(workspace_id, container)
        healthy = await self._is_healthy(workspace_id, container, address)
        return ContainerFact.READY if healthy else ContainerFact.UNHEALTHY

    def _address(self, workspace_id: WorkspaceId, container: ContainerInfo) -> int | str:
        """Return the local port of the IDE if it is published, otherwise its UNIX socket."""
        # Computed, so that nothing in an image or container can point to another socket.
        return container.host_port or self._options.sockets.ide_socket_of(workspace_id)

    async def _find_running(self, workspace_id: WorkspaceId) -> ContainerInfo | None:
        with translate_read_errors():
            container = await self._inspect(workspace_id)
        return container if container and container.running else None

    async def _find_agent(self, workspace_id: WorkspaceId, container: ContainerInfo) -> tuple[str, int]:
        """Return the agent's address for ports. Raise PortUnavailable if there is no agent."""
        if container.traits.agent_port is None:
            raise PortUnavailable(NO_AGENT)
        if container.agent_host_port is not None:
            return LOOPBACK, container.agent_host_port
        socket = self._options.sockets.ports_socket_of(workspace_id)
        if not await asyncio.to_thread(os.path.lexists, socket):
            raise PortUnavailable(OLD_AGENT)
        return socket, 0

    async def _is_healthy(
        self, workspace_id: WorkspaceId, container: ContainerInfo, address: int | str
    ) -> bool:
        base_path = self._options.base_path_of(workspace_id)
        path = container.traits.health_path.replace("/w/{id}/", base_path).replace("{id}", workspace_id)
        async with self._health_checks:
            return await is_healthy(address, path, container.headers, self._options.timeouts.health)

    async def _launch(self, workspace_id: WorkspaceId, wanted: Configuration) -> None:
        """Start the wanted container, even if another process does the same."""
        async with asyncio.timeout(LAUNCH_SECONDS):
            while not await self._is_launched(workspace_id, wanted):  # noqa: ASYNC110 (there is no event to wait for)
                await asyncio.sleep(POLL_SECONDS)

    async def _is_launched(self, workspace_id: WorkspaceId, wanted: Configuration) -> bool:
        existing = await self._inspect(workspace_id)
        if existing and existing.is_reusable:
            return True
        try:
            if existing and existing.configuration != wanted["Labels"][CONFIGURATION_LABEL]:
                await remove_container(self._container(workspace_id))
                existing = None
            if existing is None:
                created = await self._engine.containers.create(wanted, name=container_name(workspace_id))
                await require_mounted_volume(self._engine, self._options, workspace_id, created)
            with ignore_statuses(HTTPStatus.NOT_MODIFIED):
                await self._container(workspace_id).start()
        except DockerError as error:
            # CONFLICT: the name is taken before the container exists. NOT_FOUND: another process removed it.
            if error.status in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
                return False
            raise
        return True

    async def _wait_until_ready(self, workspace_id: WorkspaceId, report: Report) -> None:
        """Check the IDE often, and only now and then whether its container still runs."""
        clock = asyncio.get_running_loop().time
        began, timeout = clock(), self._options.timeouts.start
        while (elapsed := clock() - began) < timeout:
            report(Progress("wait for the IDE", int(elapsed), int(timeout), "seconds"))
            container = await self._inspect(workspace_id)
            if container is None or not container.running:
                break
            inspected = clock()
            while clock() - inspected < INSPECT_SECONDS:
                if await self._fact(workspace_id, container) is ContainerFact.READY:
                    return
                await asyncio.sleep(HEALTH_CHECK_SECONDS)
        raise await self._give_up(workspace_id)

    async def _give_up(self, workspace_id: WorkspaceId) -> Transient:
        chunks = [chunk async for chunk in self.read_log(workspace_id, tail=REPORTED_LINES, follow=False)]
        await self._remove(workspace_id)
        output = b"".join(chunks).decode(errors="replace").strip()[-REPORTED_LENGTH:] or "nothing"
        return Transient(
            ErrorReason.ACTION_FAILED, f"The IDE did not become ready. Its last output: {output}"
        )
