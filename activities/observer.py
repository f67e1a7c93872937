"""Observes the container, the volume and the archive of a workspace."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from codehub.domain.conditions import (
    ArchiveFact,
    ContainerFact,
    LostNode,
    Observation,
    VolumeFact,
    WorkspaceId,
)
from codehub.domain.failures import Failure, OutOfReach
from codehub.ports import Archives, Instances, Volumes

Fact = TypeVar("Fact")

# A slower provider counts as unreachable; the next sweep observes again.
RESPONSE_SECONDS = 10


@dataclass(frozen=True)
class Observer:
    """Observes workspaces through the providers. An outage is UNREACHABLE, never ABSENT."""

    instances: Instances
    volumes: Volumes
    archives: Archives

    async def observe(self, workspace_id: WorkspaceId, archive_key: str | None) -> Observation:
        (container, outdated), (volume, lost_node), archive = await asyncio.gather(
            self._observe_instance(workspace_id),
            _or_unreachable(self._observe_volume(workspace_id), (VolumeFact.UNREACHABLE, None)),
            self.observe_archive(archive_key),
        )
        return Observation(container, volume, archive, outdated, lost_node)

    async def _observe_volume(self, workspace_id: WorkspaceId) -> tuple[VolumeFact, LostNode | None]:
        try:
            return await self.volumes.observe(workspace_id), None
        except OutOfReach as failure:
            return VolumeFact.UNREACHABLE, LostNode(failure.message, failure.since)

    async def _observe_instance(
        self, workspace_id: WorkspaceId
    ) -> tuple[ContainerFact, tuple[str, ...] | None]:
        """Return the fact, and what a restart would change about an instance that is ready."""
        fact = await _or_unreachable(self.instances.observe(workspace_id), ContainerFact.UNREACHABLE)
        if fact is not ContainerFact.READY:
            return fact, None
        found = await _or_unreachable(self.instances.find_outdated(workspace_id), None)
        return fact, None if found is None else found.get(workspace_id, ())

    async def observe_archive(self, key: str | None) -> ArchiveFact:
        return await _or_unreachable(self.archives.observe(key), ArchiveFact.UNREACHABLE)


async def _or_unreachable(response: Awaitable[Fact], unreachable: Fact) -> Fact:
    try:
        async with asyncio.timeout(RESPONSE_SECONDS):
            return await response
    except (Failure, TimeoutError):
        return unreachable
