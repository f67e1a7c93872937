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
    Seen,
    differences,
    instance_configuration,
    remove_container,
    stop_container,
)
from codehub.adapters.docker.engine import acting, asking, tolerating
from codehub.adapters.docker.images import ensure_image, find_image
from codehub.adapters.docker.network import ensure_network, find_network
from codehub.adapters.docker.options import CONFIGURATION_LABEL, DockerOptions
from codehub.adapters.docker.volumes import is_volume, remove_bare_volume
from codehub.domain.conditions import ContainerFact, WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import container_name
from codehub.domain.states import ErrorReason
from codehub.health import answers
from codehub.ports import ImageMissing, InstanceRequest, Outdated, Progress, Report, Upstream

POLL_SECONDS = 0.05
LOOK_SECONDS = 0.5
ASK_SECONDS = 0.02
LAUNCH_SECONDS = 60
HEALTH_CHECKS_AT_ONCE = 64
REPORTED_LINES = 10
REPORTED_LENGTH = 1500


class DockerInstances:
    """The name is the lock: the engine gives it to one container only."""

    def __init__(self, engine: Docker, options: DockerOptions) -> None:
        self._engine = engine
        self._options = options
        self._health_checks = asyncio.Semaphore(HEALTH_CHECKS_AT_ONCE)

    async def observe(self, workspace_id: WorkspaceId) -> ContainerFact:
        with asking():
            seen = await self._see(workspace_id)
        return await self._judge(workspace_id, seen)

    async def list_all(self) -> Mapping[WorkspaceId, ContainerFact]:
        with asking():
            seen = await self._list()
        facts = await asyncio.gather(*(self._judge(owner, each) for owner, each in seen.items()))
        return dict(zip(seen, facts, strict=True))

    async def find_outdated(self, workspace_id: WorkspaceId | None = None) -> Outdated:
        with asking():
            seen = (
                await self._list() if workspace_id is None else {workspace_id: await self._see(workspace_id)}
            )
            running = [
                (InstanceRequest(owner, each.image_ref), each.configuration)
                for owner, each in seen.items()
                if each and each.running and each.image_ref is not None
            ]
            return await self._compare(running) if running else {}

    async def start(self, request: InstanceRequest, report: Report) -> None:
        with acting():
            await self._check_volume(request.workspace_id)
            seen = await self._see(request.workspace_id)
            if seen is None or not seen.is_left_alone:
                wanted = await self._prepare(request)
                report(Progress("launch", unit="steps"))
                await self._launch(request.workspace_id, wanted)
            await self._wait_until_ready(request.workspace_id, report)

    async def pull(self, image_ref: str, report: Report) -> None:
        with acting():
            await ensure_image(self._engine, self._options.resolve_image(image_ref), report)

    async def stop(self, workspace_id: WorkspaceId) -> None:
        container, patience = self._container(workspace_id), self._options.patience
        with acting():
            await stop_container(container, patience.stop, patience.answer)
            await remove_container(container)

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        with asking():
            seen = await self._see(workspace_id)
        if seen is None or await self._judge(workspace_id, seen) is not ContainerFact.READY:
            return None
        return Upstream(LOOPBACK, seen.host_port or 0, seen.traits.keep_prefix, (), seen.traits.ide)

    async def read_log(self, workspace_id: WorkspaceId, *, tail: int, follow: bool) -> AsyncIterator[bytes]:
        container = self._container(workspace_id)
        with asking(), tolerating(HTTPStatus.NOT_FOUND):
            if follow:
                async for text in container.log(stdout=True, stderr=True, tail=tail, follow=True):
                    yield text.encode()
            else:
                for text in await container.log(stdout=True, stderr=True, tail=tail):
                    yield text.encode()

    async def _prepare(self, request: InstanceRequest) -> Configuration:
        """Have what a container needs, and say how to make it."""
        network_id = await ensure_network(self._engine, self._options.network)
        reference = self._options.resolve_image(request.image_ref)
        image = await find_image(self._engine, reference)
        if image is None:
            raise ImageMissing
        return instance_configuration(request, image, network_id, self._options)

    async def _compare(self, running: Sequence[tuple[InstanceRequest, str]]) -> Outdated:
        """Return how each running container differs from the one that a start would make now."""
        network_id = await find_network(self._engine, self._options.network) or ""
        references = {self._options.resolve_image(request.image_ref) for request, _ in running}
        images = {each: await find_image(self._engine, each) for each in references}
        found = {}
        for request, made_from in running:
            image = images[self._options.resolve_image(request.image_ref)]
            if image is not None:
                wanted = instance_configuration(request, image, network_id, self._options)
                found[request.workspace_id] = differences(made_from, wanted)
        return {owner: changes for owner, changes in found.items() if changes}

    async def _list(self) -> dict[WorkspaceId, Seen]:
        listed = await self._engine.containers.list(all=True, filters=json.dumps(self._options.filters))
        return {
            owner: Seen.listed(each._container)  # noqa: SLF001 (aiodocker gives no other way to a listing's entries)
            for each in listed
            if (owner := self._options.owner_of(each["Labels"]))
            and f"/{container_name(owner)}" in each["Names"]
        }

    def _container(self, workspace_id: WorkspaceId) -> DockerContainer:
        return self._engine.containers.container(container_name(workspace_id))

    async def _see(self, workspace_id: WorkspaceId) -> Seen | None:
        try:
            return Seen.inspected(await self._container(workspace_id).show())
        except DockerError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def _judge(self, workspace_id: WorkspaceId, seen: Seen | None) -> ContainerFact:
        if seen is None:
            return ContainerFact.ABSENT
        if not seen.running:
            return ContainerFact.NOT_READY
        answered = seen.host_port is not None and await self._answers(workspace_id, seen)
        return ContainerFact.READY if answered else ContainerFact.UNHEALTHY

    async def _answers(self, workspace_id: WorkspaceId, seen: Seen) -> bool:
        path = seen.traits.health_path.replace("{id}", workspace_id)
        async with self._health_checks:
            return await answers(seen.host_port or 0, path, (), self._options.patience.health)

    async def _check_volume(self, workspace_id: WorkspaceId) -> None:
        if not await is_volume(self._engine, self._options, workspace_id):
            raise _homeless()

    async def _launch(self, workspace_id: WorkspaceId, wanted: Configuration) -> None:
        """See to it that a container as wanted runs, also while somebody else sees to the same."""
        async with asyncio.timeout(LAUNCH_SECONDS):
            while not await self._is_launched(workspace_id, wanted):  # noqa: ASYNC110 (nobody announces it)
                await asyncio.sleep(POLL_SECONDS)

    async def _is_launched(self, workspace_id: WorkspaceId, wanted: Configuration) -> bool:
        seen = await self._see(workspace_id)
        if seen and seen.is_left_alone:
            return True
        try:
            if seen and seen.configuration != wanted["Labels"][CONFIGURATION_LABEL]:
                await remove_container(self._container(workspace_id))
                seen = None
            if seen is None:
                await self._engine.containers.create(wanted, name=container_name(workspace_id))
                await self._check_home(workspace_id)
            with tolerating(HTTPStatus.NOT_MODIFIED):
                await self._container(workspace_id).start()
        except DockerError as error:
            # The name is taken before the container is there; and what was there may have been removed.
            if error.status in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
                return False
            raise
        return True

    async def _check_home(self, workspace_id: WorkspaceId) -> None:
        """A home that vanished since it was looked for has been replaced by Docker with an empty volume."""
        if await is_volume(self._engine, self._options, workspace_id):
            return
        await remove_container(self._container(workspace_id))
        await remove_bare_volume(self._engine, workspace_id)
        raise _homeless()

    async def _wait_until_ready(self, workspace_id: WorkspaceId, report: Report) -> None:
        """Ask the IDE often, and the engine only now and then whether it still runs."""
        clock = asyncio.get_running_loop().time
        began, patience = clock(), self._options.patience.start
        while (elapsed := clock() - began) < patience:
            report(Progress("wait for the IDE", int(elapsed), int(patience), "seconds"))
            seen = await self._see(workspace_id)
            if seen is None or not seen.running:
                break
            looked = clock()
            while clock() - looked < LOOK_SECONDS:
                if await self._judge(workspace_id, seen) is ContainerFact.READY:
                    return
                await asyncio.sleep(ASK_SECONDS)
        raise await self._give_up(workspace_id)

    async def _give_up(self, workspace_id: WorkspaceId) -> Transient:
        chunks = [chunk async for chunk in self.read_log(workspace_id, tail=REPORTED_LINES, follow=False)]
        await remove_container(self._container(workspace_id))
        said = b"".join(chunks).decode(errors="replace").strip()[-REPORTED_LENGTH:] or "nothing"
        return Transient(ErrorReason.ACTION_FAILED, f"The IDE did not become ready. It said last: {said}")


def _homeless() -> Transient:
    return Transient(ErrorReason.ACTION_FAILED, "The IDE cannot be started: its volume does not exist.")
