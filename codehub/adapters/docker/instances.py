"""IDE instances as containers."""

import asyncio
import json
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
)
from codehub.adapters.docker.engine import ignore_statuses, translate_change_errors, translate_read_errors
from codehub.adapters.docker.images import ensure_image, find_image
from codehub.adapters.docker.network import ensure_network, find_network
from codehub.adapters.docker.options import CONFIGURATION_LABEL, DockerOptions
from codehub.adapters.docker.volumes import require_mounted_volume, require_volume
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import container_name
from codehub.domain.states import ErrorReason
from codehub.health import is_healthy
from codehub.ports import ImageMissing, InstanceRequest, Outdated, Progress, Report, Upstream

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
            await remove_container(container)

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        with translate_read_errors():
            container = await self._inspect(workspace_id)
        if container is None or await self._fact(workspace_id, container) is not ContainerFact.READY:
            return None
        traits = container.traits
        return Upstream(LOOPBACK, container.host_port or 0, traits.keep_prefix, (), traits.ide)

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
        network_id = await ensure_network(self._engine, self._options.network)
        reference = self._options.resolve_image(request.image_ref)
        image = await find_image(self._engine, reference)
        if image is None:
            raise ImageMissing
        return instance_configuration(request, image, network_id, self._options)

    async def _compare(self, running: Sequence[tuple[InstanceRequest, str]]) -> Outdated:
        """Return how each running container differs from the one that a start would create now."""
        network_id = await find_network(self._engine, self._options.network) or ""
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
        healthy = container.host_port is not None and await self._is_healthy(workspace_id, container)
        return ContainerFact.READY if healthy else ContainerFact.UNHEALTHY

    async def _is_healthy(self, workspace_id: WorkspaceId, container: ContainerInfo) -> bool:
        path = container.traits.health_path.replace("{id}", workspace_id)
        async with self._health_checks:
            return await is_healthy(container.host_port or 0, path, (), self._options.timeouts.health)

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
        await remove_container(self._container(workspace_id))
        output = b"".join(chunks).decode(errors="replace").strip()[-REPORTED_LENGTH:] or "nothing"
        return Transient(
            ErrorReason.ACTION_FAILED, f"The IDE did not become ready. Its last output: {output}"
        )
