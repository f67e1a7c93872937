"""Starts children in parallel, group after group, and stops the groups in reverse order."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from codehub.embedded.backoff import STABLE_SECONDS
from codehub.embedded.children import Child, Observer, Status
from codehub.embedded.managed_process import ManagedProcess
from codehub.embedded.spawning import rotate


class Supervisor:
    """All children of this process."""

    def __init__(self, logs: Path, observer: Observer, stable_seconds: float = STABLE_SECONDS) -> None:
        self._logs = logs
        self._observer = observer
        self._stable_seconds = stable_seconds
        self._groups: list[list[ManagedProcess]] = []
        self._patience = 1.0

    @property
    def statuses(self) -> list[Status]:
        return [keeper.status for group in self._groups for keeper in group]

    def add(self, children: Sequence[Child]) -> None:
        """Announce a group that does not depend on each other, but on the groups before it."""
        group = [
            ManagedProcess(child, self._logs / f"{child.name}.log", self._observer, self._stable_seconds)
            for child in children
        ]
        self._groups.append(group)
        for keeper in group:
            self._observer(keeper.status)

    async def start(self) -> None:
        """Start the group added last. Raise StartFailed at the first that fails; the others stay running."""
        for keeper in self._groups[-1]:
            rotate(keeper.log)
        starting = [asyncio.create_task(keeper.start()) for keeper in self._groups[-1]]
        try:
            await asyncio.gather(*starting)
        finally:
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)

    async def stop(self) -> None:
        for group in reversed(self._groups):
            await asyncio.gather(*(keeper.stop(self._patience) for keeper in group))

    def hurry(self) -> None:
        """End everything at once, also what a stop is waiting for right now."""
        self._patience = 0.0
        for keeper in self._keepers():
            keeper.kill_now()

    async def kill(self, name: str) -> None:
        await self._keeper(name).kill()

    async def restart(self, name: str) -> None:
        await self._keeper(name).restart()

    async def wait_ready(self, name: str) -> None:
        await self._keeper(name).wait_ready()

    def _keepers(self) -> list[ManagedProcess]:
        return [keeper for group in self._groups for keeper in group]

    def _keeper(self, name: str) -> ManagedProcess:
        for keeper in self._keepers():
            if keeper.child.name == name:
                return keeper
        raise KeyError(name)
