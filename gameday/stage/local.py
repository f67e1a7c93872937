"""The local backend of a stage: homes are directories, IDEs and jobs are processes."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from codehub.adapters.local.root import LocalRoot
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import parse_volume_name, volume_name
from gameday.stage.processes import OwnProcesses


class LocalGround:
    """Looks at /proc and at directories; reading them takes a few milliseconds, so it is done in a thread."""

    def __init__(self, root: Path, programs: Path) -> None:
        self._root = LocalRoot.at(root)
        self._processes = OwnProcesses(programs)
        # A process tells only its marker; whose it is, is known for every workspace that was ever seen.
        self._owners: dict[str, str] = {}

    @property
    def settings(self) -> Mapping[str, str]:
        return {"CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local"}

    def home(self, workspace_id: str) -> Path:
        self._remember(workspace_id)
        return self._root.volumes / volume_name(WorkspaceId(workspace_id))

    async def volumes(self) -> list[str]:
        return await asyncio.to_thread(self._list_volumes)

    async def instances(self) -> dict[str, list[str]]:
        found = await asyncio.to_thread(self._find_instances)
        # One whose workspace nobody knows is shown under its marker.
        return {self._owners.get(marker, marker): [*map(str, pids)] for marker, pids in found.items()}

    async def jobs(self) -> list[str]:
        return [str(pid) for pid in await asyncio.to_thread(self._processes.jobs)]

    async def kill_instance(self, name: str) -> None:
        await asyncio.to_thread(self._processes.kill_instance, int(name))

    async def remove_instance(self, name: str) -> None:
        await self.kill_instance(name)

    async def kill_job(self, name: str) -> None:
        await asyncio.to_thread(self._processes.kill_job, int(name))

    async def pid_of_job(self, name: str) -> int | None:
        return int(name)

    def _find_instances(self) -> dict[str, list[int]]:
        self._list_volumes()
        return self._processes.instances()

    def _list_volumes(self) -> list[str]:
        if not self._root.volumes.is_dir():
            return []
        names = [entry.name for entry in self._root.volumes.iterdir()]
        found = [workspace_id for name in names if (workspace_id := parse_volume_name(name))]
        for workspace_id in found:
            self._remember(workspace_id)
        return [str(each) for each in found]

    def _remember(self, workspace_id: str) -> None:
        self._owners[self._root.marker(WorkspaceId(workspace_id))] = workspace_id


@contextmanager
def local_ground(root: Path, programs: Path) -> Iterator[LocalGround]:
    """Nothing that was started on it outlives the block."""
    try:
        yield LocalGround(root, programs)
    finally:
        OwnProcesses(programs).kill_everything()
