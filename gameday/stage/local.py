"""The local backend of a stage: homes are directories, instances and jobs are processes."""

import asyncio
import contextlib
import os
import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from codehub.adapters.local.processes import MARKER_VARIABLE
from codehub.adapters.local.root import LocalRoot
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import parse_volume_name, volume_name
from codehub.embedded.free_ports import LOOPBACK

PROC = Path("/proc")
JOB_MODULE = b"storage_job"


@dataclass(frozen=True)
class Process:
    """One process; `marker` identifies its instance and is empty for a job."""

    pid: int
    parent: int
    marker: str


class StageProcesses:
    """The processes of a stage, found by the directory of its programs in their PATH."""

    def __init__(self, programs: Path) -> None:
        self._programs = os.fsencode(programs)

    def instances(self) -> dict[str, list[int]]:
        """Return the root process of each instance, by marker."""
        members = [each for each in self._find() if each.marker]
        markers = {each.pid: each.marker for each in members}
        found = defaultdict(list)
        for each in members:
            if markers.get(each.parent) != each.marker:
                found[each.marker].append(each.pid)
        return dict(found)

    def jobs(self) -> list[int]:
        return [each.pid for each in self._find() if not each.marker]

    def kill_instance(self, pid: int) -> None:
        """Kill every process with the same marker."""
        markers = {each.pid: each.marker for each in self._find()}
        if marker := markers.get(pid):
            for member in (each for each, other in markers.items() if other == marker):
                self._kill(member)

    def kill_job(self, pid: int) -> None:
        self._kill(pid)

    def kill_everything(self) -> None:
        for each in self._find():
            self._kill(each.pid)

    def _find(self) -> Iterator[Process]:
        for entry in os.scandir(PROC):
            if entry.name.isdecimal():
                with contextlib.suppress(OSError):
                    if found := self._read(int(entry.name)):
                        yield found

    def _read(self, pid: int) -> Process | None:
        variables = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        if not any(each.startswith(b"PATH=") and self._programs in each for each in variables):
            return None
        named = f"{MARKER_VARIABLE}=".encode()
        marker = next((each.removeprefix(named) for each in variables if each.startswith(named)), b"")
        if not marker and not _is_job(pid):
            return None
        # The name in parentheses may contain spaces and parentheses.
        state, parent, *_ = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if state == "Z" else Process(pid, int(parent), marker.decode())

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                # Read it again with the handle open: from here on the pid cannot belong to another process.
                if self._read(pid) is not None:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)


def _is_job(pid: int) -> bool:
    """Return whether this is the job itself and not its tar process, which ends with it."""
    words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    return JOB_MODULE in words


class LocalBackend:
    """Reads /proc and the volumes directory, in threads because that takes milliseconds."""

    def __init__(self, root: Path, programs: Path) -> None:
        self._root = LocalRoot.at(root)
        self._processes = StageProcesses(programs)
        # A process has only a marker, so remember the marker of every workspace ever found.
        self._owners: dict[str, str] = {}

    @property
    def settings(self) -> Mapping[str, str]:
        return {"CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local"}

    @property
    def host(self) -> str:
        return LOOPBACK

    async def home(self, workspace_id: str) -> Path:
        self._remember(workspace_id)
        return self._root.volumes / volume_name(WorkspaceId(workspace_id))

    async def volumes(self) -> list[str]:
        return await asyncio.to_thread(self._list_volumes)

    async def instances(self) -> dict[str, list[str]]:
        found = await asyncio.to_thread(self._find_instances)
        # An instance of an unknown workspace is listed under its marker.
        return {self._owners.get(marker, marker): [*map(str, pids)] for marker, pids in found.items()}

    async def jobs(self) -> list[str]:
        return [str(pid) for pid in await asyncio.to_thread(self._processes.jobs)]

    async def leftovers(self) -> dict[str, list[str]]:
        return {}

    async def versions(self) -> Mapping[str, str]:
        return {}

    def unavailable(self) -> list[str]:
        return []

    async def wait_ready(self) -> None:
        """Return at once: there are no such servers."""

    async def kill_instance(self, name: str) -> None:
        await asyncio.to_thread(self._processes.kill_instance, int(name))

    async def remove_instance(self, name: str) -> None:
        await self.kill_instance(name)

    async def kill_job(self, name: str) -> None:
        await asyncio.to_thread(self._processes.kill_job, int(name))

    async def job_pid(self, name: str) -> int | None:
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
def local_backend(root: Path, programs: Path) -> Iterator[LocalBackend]:
    """Open the backend; kill all of its processes at the end."""
    try:
        yield LocalBackend(root, programs)
    finally:
        StageProcesses(programs).kill_everything()
