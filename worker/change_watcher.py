"""Wakes workspaces when the provider reports a change, without waiting for the next sweep."""

import logging
from dataclasses import dataclass
from typing import NoReturn

from codehub.db.session import Database
from codehub.db.sweeps import load_last_observed
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Changes, Convergence
from codehub.services.outages import is_outage

log = logging.getLogger("worker.change_watcher")


@dataclass(frozen=True)
class ChangeWatcher:
    """Wakes changed workspaces. A missed change only waits for the next sweep."""

    database: Database
    changes: Changes
    convergence: Convergence

    async def run(self) -> NoReturn:
        async for workspace_id in self.changes.follow():
            try:
                await self._wake(workspace_id)
            except Exception as error:
                if not is_outage(error):
                    raise
                log.warning("could not wake %s after a change: %s", workspace_id, error)
        raise AssertionError("the changes have ended")

    async def _wake(self, workspace_id: WorkspaceId) -> None:
        async with self.database.transaction() as session:
            expected = await load_last_observed(session, [workspace_id])
        for each in expected:
            # The workflow of a busy workspace observes it anyway.
            if not each.busy:
                await self.convergence.wake(each.workspace_id, each.owner_id)
