"""The interface of a stage's backend: observe and break instances, volumes and jobs directly."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Backend(Protocol):
    """Instances and jobs are named by their process id, their container or the uid of their Pod."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that make CodeHub use this backend."""

    @property
    def host(self) -> str:
        """The address of this machine at which storage jobs reach its servers."""

    async def home(self, workspace_id: str) -> Path:
        """Return where the home is, whether or not the volume exists."""

    async def volumes(self) -> list[str]:
        """Return the ids of the workspaces that have a volume."""

    async def instances(self) -> dict[str, list[str]]:
        """Return all existing instances by workspace, exited containers included."""

    async def jobs(self) -> list[str]:
        """Return the running storage jobs."""

    async def leftovers(self) -> dict[str, list[str]]:
        """Return what else exists by workspace, and must be gone when the volume is."""

    async def versions(self) -> Mapping[str, str]:
        """Return the versions of the servers that run workspaces."""

    def unavailable(self) -> list[str]:
        """Return the parts that faults have broken and that are not ready yet."""

    async def wait_ready(self) -> None:
        """Wait until the servers that run workspaces are ready."""

    async def kill_instance(self, name: str) -> None:
        """Kill the whole instance with SIGKILL; succeed if absent."""

    async def remove_instance(self, name: str) -> None:
        """Remove the instance; a killed container or Pod still exists."""

    async def kill_job(self, name: str) -> None: ...

    async def job_pid(self, name: str) -> int | None:
        """Return the job's process id on this machine, or None if it has ended."""
