"""What really runs workspaces, looked at and broken behind CodeHub's back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Ground(Protocol):
    """One backend: an instance or a job is named by what it is, a process or a container."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What makes CodeHub use it."""

    def home(self, workspace_id: str) -> Path:
        """Where the files are, whether or not the volume exists."""

    async def volumes(self) -> list[str]:
        """The workspaces of which there is a volume."""

    async def instances(self) -> dict[str, list[str]]:
        """Everything that exists as an instance now, by workspace; exited containers too."""

    async def jobs(self) -> list[str]:
        """The storage jobs that run now."""

    async def kill_instance(self, name: str) -> None:
        """kill -9 of all of it; nothing happens if it is gone."""

    async def remove_instance(self, name: str) -> None:
        """Make it disappear, where it leaves something behind when it is killed."""

    async def kill_job(self, name: str) -> None: ...

    async def pid_of_job(self, name: str) -> int | None:
        """Its process on this machine; None if it is gone."""
