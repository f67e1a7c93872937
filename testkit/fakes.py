"""In-memory providers for tests of workflow logic; they pass the conformance suite of the real ones."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import uuid4

from codehub.domain.conditions import ArchiveFact, ContainerFact, Resource, VolumeFact, WorkspaceId
from codehub.domain.failures import OutOfReach, Permanent, Transient, within_reach
from codehub.domain.naming import ARCHIVE_ROOT, meta_key
from codehub.domain.states import ErrorReason
from codehub.instance_ports import RESERVED_PORTS, explain_reserved
from codehub.ports import (
    ArchiveObject,
    ExpectedArchive,
    ImageMissing,
    InstanceRequest,
    ListeningPort,
    Measurement,
    Outdated,
    PortUnavailable,
    Progress,
    Report,
    StoredArchive,
    Upstream,
)
from testkit.fake_world import IMAGE, NEVER_READY_IMAGE, FakeInstance, FakeObject, FakeWorld, Home

__all__ = [
    "IMAGE",
    "NEVER_READY_IMAGE",
    "FakeArchives",
    "FakeHomeStore",
    "FakeInstance",
    "FakeInstances",
    "FakeObject",
    "FakeProgressBoard",
    "FakeStorageJobs",
    "FakeVolumes",
    "FakeWorld",
    "Home",
]


class FakeInstances:
    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    async def observe(self, workspace_id: WorkspaceId) -> ContainerFact:
        await self._world.enter("instances.look", workspace_id, Resource.CONTAINER)
        return self._fact(workspace_id)

    async def list_all(self) -> Mapping[WorkspaceId, ContainerFact]:
        await self._world.enter("instances.list_all", "", Resource.CONTAINER)
        return {workspace_id: self._fact(workspace_id) for workspace_id in self._world.instances}

    async def find_outdated(self, workspace_id: WorkspaceId | None = None) -> Outdated:
        await self._world.enter("instances.find_outdated", workspace_id or "", Resource.CONTAINER)
        wanted = self._world.configuration
        found = {
            owner: tuple(sorted(name for name in wanted if wanted[name] != each.made_from.get(name)))
            for owner, each in self._world.instances.items()
            if each.alive and workspace_id in (None, owner)
        }
        return {owner: changes for owner, changes in found.items() if changes}

    async def start(self, request: InstanceRequest, report: Report) -> None:
        await self._world.enter("instances.start", request.workspace_id, Resource.CONTAINER)
        if request.workspace_id not in self._world.volumes:
            raise Transient(ErrorReason.ACTION_FAILED, "The volume does not exist.")
        report(Progress("launch"))
        if not self._is_alive(request.workspace_id):
            await self._launch(request)
        await self._wait_until_ready(request.workspace_id)

    async def _launch(self, request: InstanceRequest) -> None:
        if request.image_ref not in self._world.images:
            raise ImageMissing
        await self._world.pass_gate("instances.start")
        if not self._is_alive(request.workspace_id):
            answers = request.image_ref != NEVER_READY_IMAGE
            made = FakeInstance(request.image_ref, answers=answers, made_from=dict(self._world.configuration))
            self._world.instances[request.workspace_id] = made

    async def _wait_until_ready(self, workspace_id: WorkspaceId) -> None:
        deadline = time.monotonic() + self._world.start_seconds
        while self._fact(workspace_id) is ContainerFact.UNHEALTHY and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        if self._fact(workspace_id) is not ContainerFact.READY:
            self._world.instances.pop(workspace_id, None)
            raise Transient(ErrorReason.ACTION_FAILED, "The IDE did not become ready.")

    async def pull(self, image_ref: str, report: Report) -> None:
        await self._world.enter("instances.pull", image_ref, Resource.CONTAINER)
        if image_ref not in self._world.images | self._world.registry:
            raise Permanent(ErrorReason.IMAGE_PULL_FAILED, f"There is no image {image_ref!r}.")
        report(Progress("pulling the image", 1, 2))
        await self._world.pass_gate("instances.pull")
        self._world.images.add(image_ref)

    async def stop(self, workspace_id: WorkspaceId) -> None:
        await self._world.enter("instances.stop", workspace_id, Resource.CONTAINER)
        await self._world.pass_gate("instances.stop")
        self._world.instances.pop(workspace_id, None)

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        await self._world.enter("instances.find_upstream", workspace_id, Resource.CONTAINER)
        ready = self._fact(workspace_id) is ContainerFact.READY
        return Upstream("127.0.0.1", 8080, keep_prefix=False) if ready else None

    async def find_port(self, workspace_id: WorkspaceId, port: int) -> Upstream | None:
        await self._world.enter("instances.find_port", workspace_id, Resource.CONTAINER)
        if port in RESERVED_PORTS:
            raise PortUnavailable(explain_reserved(port))
        alive = self._is_alive(workspace_id)
        return Upstream("127.0.0.1", port, keep_prefix=True) if alive else None

    async def list_ports(self, workspace_id: WorkspaceId) -> Sequence[ListeningPort]:
        await self._world.enter("instances.list_ports", workspace_id, Resource.CONTAINER)
        alive = self._is_alive(workspace_id)
        ports = self._world.instances[workspace_id].ports if alive else {}
        return [ListeningPort(port, ports[port]) for port in sorted(ports)]

    async def read_log(self, workspace_id: WorkspaceId, *, tail: int, follow: bool) -> AsyncIterator[bytes]:
        await self._world.enter("instances.read_log", workspace_id, Resource.CONTAINER)
        instance = self._world.instances.get(workspace_id)
        lines = instance.log if instance else []
        seen = max(0, len(lines) - tail)
        while True:
            for line in lines[seen:]:
                yield line
            seen = len(lines)
            if not (follow and instance and instance.alive and workspace_id in self._world.instances):
                return
            await asyncio.sleep(0.01)

    def _fact(self, workspace_id: WorkspaceId) -> ContainerFact:
        instance = self._world.instances.get(workspace_id)
        if instance is None:
            return ContainerFact.ABSENT
        if not instance.alive:
            return ContainerFact.NOT_READY
        return ContainerFact.READY if instance.answers else ContainerFact.UNHEALTHY

    def _is_alive(self, workspace_id: WorkspaceId) -> bool:
        return workspace_id in self._world.instances and self._world.instances[workspace_id].alive


class FakeVolumes:
    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    async def observe(self, workspace_id: WorkspaceId) -> VolumeFact:
        await self._world.enter("volumes.look", workspace_id, Resource.VOLUME)
        if lost := self._world.lost_nodes.get(workspace_id):
            raise OutOfReach(lost.message, lost.since)
        return VolumeFact.PRESENT if workspace_id in self._world.volumes else VolumeFact.ABSENT

    async def list_all(self) -> Sequence[WorkspaceId]:
        await self._world.enter("volumes.list_all", "", Resource.VOLUME)
        return list(self._world.volumes)

    async def provision(self, workspace_id: WorkspaceId) -> None:
        await self._world.enter("volumes.provision", workspace_id, Resource.VOLUME)
        self._world.volumes.setdefault(workspace_id, {})

    async def remove(self, workspace_id: WorkspaceId) -> None:
        await self._world.enter("volumes.remove", workspace_id, Resource.VOLUME)
        if workspace_id in self._world.instances or workspace_id in self._world.jobs:
            raise Transient(ErrorReason.ACTION_FAILED, "The volume is in use.")
        self._world.volumes.pop(workspace_id, None)

    async def set_aside(self, workspace_id: WorkspaceId) -> None:
        await self._world.enter("volumes.set_aside", workspace_id, Resource.VOLUME)
        if workspace_id not in self._world.volumes:
            return
        if workspace_id not in self._world.lost_nodes:
            raise within_reach()
        if workspace_id in self._world.instances or workspace_id in self._world.jobs:
            raise Transient(ErrorReason.ACTION_FAILED, "The volume is in use.")
        del self._world.lost_nodes[workspace_id]
        self._world.set_aside.append(self._world.volumes.pop(workspace_id))

    async def measure(self, workspace_id: WorkspaceId, seconds: float) -> Measurement | None:
        del seconds
        await self._world.enter("volumes.measure", workspace_id, Resource.VOLUME)
        if workspace_id not in self._world.volumes:
            return None
        return self._world.sizes.get(workspace_id, Measurement(0, complete=True))


class FakeHomeStore:
    def __init__(self, world: FakeWorld, location: str = "a fake store") -> None:
        self._world = world
        self.location = location

    async def read_identity(self) -> str | None:
        await self._world.enter("homes.read_identity", "", Resource.VOLUME)
        return self._world.identity

    async def create_identity(self) -> str:
        await self._world.enter("homes.create_identity", "", Resource.VOLUME)
        self._world.identity = self._world.identity or str(uuid4())
        return self._world.identity


class FakeArchives:
    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    async def observe(self, key: str | None) -> ArchiveFact:
        await self._world.enter("archives.look", key or "", Resource.ARCHIVE)
        present = key is not None and self._world.is_committed(key)
        return ArchiveFact.PRESENT if present else ArchiveFact.ABSENT

    async def read_meta(self, key: str) -> StoredArchive | None:
        await self._world.enter("archives.read_meta", key, Resource.ARCHIVE)
        return self._world.read_meta(key) if self._world.is_committed(key) else None

    async def list_all(self) -> AsyncIterator[ArchiveObject]:
        await self._world.enter("archives.list_all", "", Resource.ARCHIVE)
        for key, stored in sorted(self._world.objects.items()):
            if key.startswith(ARCHIVE_ROOT):
                yield ArchiveObject(key, len(stored.content), stored.modified_at)

    async def remove(self, key: str) -> None:
        await self._world.enter("archives.remove", key, Resource.ARCHIVE)
        for each in (meta_key(key), key):
            self._world.objects.pop(each, None)

    async def abort_stale_uploads(self, older_than: datetime) -> int:
        await self._world.enter("archives.abort_stale_uploads", "", Resource.ARCHIVE)
        stale = [key for key, began in self._world.uploads.items() if began < older_than]
        for key in stale:
            del self._world.uploads[key]
        return len(stale)


class FakeStorageJobs:
    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        async with self._job("jobs.archive", workspace_id, report):
            if workspace_id not in self._world.volumes:
                raise Transient(ErrorReason.ACTION_FAILED, "The volume does not exist.")
            if self._world.is_committed(key):
                return self._world.read_meta(key)
            return self._world.store_home(key, self._world.volumes[workspace_id])

    async def restore(
        self, workspace_id: WorkspaceId, key: str, report: Report, expected: ExpectedArchive
    ) -> None:
        async with self._job("jobs.restore", workspace_id, report):
            self._world.volumes.setdefault(workspace_id, {})
            if not self._world.is_committed(key):
                raise Permanent(ErrorReason.DATA_LOST, f"There is no archive {key}.")
            content = self._world.objects[key].content
            if hashlib.sha256(content).hexdigest() != self._world.read_meta(key).sha256:
                raise Permanent(ErrorReason.ARCHIVE_CORRUPTED, f"The archive {key} does not match its meta.")
            if not _is_as_recorded(self._world.read_meta(key), expected):
                raise Permanent(ErrorReason.ARCHIVE_CORRUPTED, f"The archive {key} is not the recorded one.")
            home = json.loads(content)
            self._world.volumes[workspace_id] = {name: bytes.fromhex(data) for name, data in home.items()}

    async def create_empty(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        async with self._job("jobs.create_empty", workspace_id, report):
            return (
                self._world.read_meta(key)
                if self._world.is_committed(key)
                else self._world.store_home(key, {})
            )

    async def remove_abandoned(self) -> int:
        await self._world.enter("jobs.remove_abandoned", "", Resource.VOLUME)
        return 0

    @asynccontextmanager
    async def _job(self, call: str, workspace_id: WorkspaceId, report: Report) -> AsyncIterator[None]:
        await self._world.enter(call, workspace_id, Resource.VOLUME, Resource.ARCHIVE)
        if workspace_id in self._world.jobs:
            raise Transient(ErrorReason.ACTION_FAILED, "Another job is still using this volume.")
        self._world.jobs.add(workspace_id)
        try:
            report(Progress("upload", 0, None))
            await self._world.pass_gate(call)
            yield
        finally:
            self._world.jobs.discard(workspace_id)


def _is_as_recorded(stored: StoredArchive, expected: ExpectedArchive) -> bool:
    same_size = expected.size_bytes in (None, stored.size_bytes)
    return same_size and expected.sha256 in (None, stored.sha256)


class FakeProgressBoard:
    def __init__(self, lifetime_seconds: float = 10.0) -> None:
        self.is_up = True
        self._lifetime_seconds = lifetime_seconds
        self._posted: dict[WorkspaceId, tuple[Progress, float]] = {}

    async def post(self, workspace_id: WorkspaceId, progress: Progress) -> None:
        if self.is_up:
            self._posted[workspace_id] = progress, time.monotonic() + self._lifetime_seconds

    async def read(self, workspace_ids: Collection[WorkspaceId]) -> Mapping[WorkspaceId, Progress] | None:
        now = time.monotonic()
        found = {each: self._posted[each] for each in workspace_ids if each in self._posted}
        latest = {each: progress for each, (progress, forgotten_at) in found.items() if now < forgotten_at}
        return latest if self.is_up else None

    async def clear(self, workspace_id: WorkspaceId) -> None:
        if self.is_up:
            self._posted.pop(workspace_id, None)
