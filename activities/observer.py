"""One look at a workspace's container, volume and archive; silence is told apart from absence."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from codehub.domain.conditions import ArchiveFact, ContainerFact, Observation, VolumeFact, WorkspaceId
from codehub.domain.failures import Failure
from codehub.ports import Archives, Instances, Volumes

Fact = TypeVar("Fact")

# A provider that takes longer has not answered; the next sweep asks again.
ANSWER_SECONDS = 10


@dataclass(frozen=True)
class Observer:
    """The providers, for looking only."""

    instances: Instances
    volumes: Volumes
    archives: Archives

    async def observe(self, workspace_id: WorkspaceId, archive_key: str | None) -> Observation:
        container, volume, archive = await asyncio.gather(
            _answer(self.instances.observe(workspace_id), ContainerFact.UNREACHABLE),
            _answer(self.volumes.observe(workspace_id), VolumeFact.UNREACHABLE),
            self.look_at_archive(archive_key),
        )
        return Observation(container, volume, archive, await self._find_outdated(workspace_id, container))

    async def _find_outdated(
        self, workspace_id: WorkspaceId, container: ContainerFact
    ) -> tuple[str, ...] | None:
        if container is not ContainerFact.READY:
            return None
        found = await _answer(self.instances.find_outdated(workspace_id), None)
        return None if found is None else found.get(workspace_id, ())

    async def look_at_archive(self, key: str | None) -> ArchiveFact:
        return await _answer(self.archives.observe(key), ArchiveFact.UNREACHABLE)


async def _answer(asked: Awaitable[Fact], silence: Fact) -> Fact:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await asked
    except (Failure, TimeoutError):
        return silence
