"""Providers that fail while the home store is not the recorded one.

The store is confirmed before each change, and after each observation.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from codehub.db.home_store import RecordedStore, load_home_store
from codehub.db.session import Database
from codehub.domain.conditions import ContainerFact, VolumeFact, WorkspaceId
from codehub.domain.failures import OutOfReach, Transient
from codehub.domain.states import ErrorReason
from codehub.ports import (
    ExpectedArchive,
    HomeStore,
    InstanceRequest,
    Instances,
    ListeningPort,
    Measurement,
    Outdated,
    Report,
    StorageJobs,
    StoredArchive,
    Upstream,
    Volumes,
)
from codehub.services.home_store import explain_difference
from codehub.services.outages import is_outage

# Only `codehub homes adopt` changes the record. A change reads it again; an observation may use the cache.
RECORD_SECONDS = 5.0


@dataclass
class HomeGuard:
    """Confirms that the homes are in the store that the database records."""

    database: Database
    backend: str
    store: HomeStore
    record_seconds: float = RECORD_SECONDS
    _recorded: RecordedStore | None = field(default=None, init=False)
    _read_at: float = field(default=0.0, init=False)

    async def confirm(self, *, before_change: bool = False) -> None:
        """Raise Transient(UNREACHABLE) unless the present store is the recorded one."""
        identity = await self.store.read_identity()
        if before_change or self._explain(identity):
            await self._load()
        elif time.monotonic() - self._read_at > self.record_seconds:
            # While PostgreSQL is down, the record cannot change.
            with contextlib.suppress(Transient):
                await self._load()
        if problem := self._explain(identity):
            raise Transient(ErrorReason.UNREACHABLE, problem)

    def _explain(self, identity: str | None) -> str | None:
        if self._recorded is None:
            return "The home store is not recorded yet; a worker records it when it starts."
        return explain_difference(self._recorded, self.backend, self.store, identity)

    async def _load(self) -> None:
        try:
            async with self.database.transaction() as session:
                self._recorded = await load_home_store(session)
            self._read_at = time.monotonic()
        except Exception as error:
            if not is_outage(error):
                raise
            raise Transient(ErrorReason.UNREACHABLE, "PostgreSQL does not answer.") from error


@dataclass(frozen=True)
class GuardedInstances:
    """Instances, guarded."""

    instances: Instances
    guard: HomeGuard

    async def observe(self, workspace_id: WorkspaceId) -> ContainerFact:
        fact = await self.instances.observe(workspace_id)
        await self.guard.confirm()
        return fact

    async def list_all(self) -> Mapping[WorkspaceId, ContainerFact]:
        found = await self.instances.list_all()
        await self.guard.confirm()
        return found

    async def start(self, request: InstanceRequest, report: Report) -> None:
        await self.guard.confirm(before_change=True)
        await self.instances.start(request, report)

    async def pull(self, image_ref: str, report: Report) -> None:
        await self.guard.confirm(before_change=True)
        await self.instances.pull(image_ref, report)

    async def stop(self, workspace_id: WorkspaceId) -> None:
        await self.guard.confirm(before_change=True)
        await self.instances.stop(workspace_id)

    async def find_upstream(self, workspace_id: WorkspaceId) -> Upstream | None:
        found = await self.instances.find_upstream(workspace_id)
        await self.guard.confirm()
        return found

    async def find_port(self, workspace_id: WorkspaceId, port: int) -> Upstream | None:
        found = await self.instances.find_port(workspace_id, port)
        await self.guard.confirm()
        return found

    async def list_ports(self, workspace_id: WorkspaceId) -> Sequence[ListeningPort]:
        found = await self.instances.list_ports(workspace_id)
        await self.guard.confirm()
        return found

    async def find_outdated(self, workspace_id: WorkspaceId | None = None) -> Outdated:
        found = await self.instances.find_outdated(workspace_id)
        await self.guard.confirm()
        return found

    async def read_log(self, workspace_id: WorkspaceId, *, tail: int, follow: bool) -> AsyncIterator[bytes]:
        await self.guard.confirm()
        async for content in self.instances.read_log(workspace_id, tail=tail, follow=follow):
            yield content


@dataclass(frozen=True)
class GuardedVolumes:
    """Volumes, guarded."""

    volumes: Volumes
    guard: HomeGuard

    async def observe(self, workspace_id: WorkspaceId) -> VolumeFact:
        try:
            fact = await self.volumes.observe(workspace_id)
        except OutOfReach:
            # Another store may have a lost node too.
            await self.guard.confirm()
            raise
        await self.guard.confirm()
        return fact

    async def list_all(self) -> Sequence[WorkspaceId]:
        found = await self.volumes.list_all()
        await self.guard.confirm()
        return found

    async def provision(self, workspace_id: WorkspaceId) -> None:
        await self.guard.confirm(before_change=True)
        await self.volumes.provision(workspace_id)

    async def remove(self, workspace_id: WorkspaceId) -> None:
        await self.guard.confirm(before_change=True)
        await self.volumes.remove(workspace_id)

    async def set_aside(self, workspace_id: WorkspaceId) -> None:
        await self.guard.confirm(before_change=True)
        await self.volumes.set_aside(workspace_id)

    async def measure(self, workspace_id: WorkspaceId, seconds: float) -> Measurement | None:
        found = await self.volumes.measure(workspace_id, seconds)
        await self.guard.confirm()
        return found


@dataclass(frozen=True)
class GuardedStorageJobs:
    """Storage jobs, guarded."""

    jobs: StorageJobs
    guard: HomeGuard

    async def archive(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        await self.guard.confirm(before_change=True)
        return await self.jobs.archive(workspace_id, key, report)

    async def restore(
        self, workspace_id: WorkspaceId, key: str, report: Report, expected: ExpectedArchive
    ) -> None:
        await self.guard.confirm(before_change=True)
        await self.jobs.restore(workspace_id, key, report, expected)

    async def create_empty(self, workspace_id: WorkspaceId, key: str, report: Report) -> StoredArchive:
        await self.guard.confirm(before_change=True)
        return await self.jobs.create_empty(workspace_id, key, report)

    async def remove_abandoned(self) -> int:
        await self.guard.confirm(before_change=True)
        return await self.jobs.remove_abandoned()
