"""Looks at once at what the provider says has ended or gone; without it, the next sweep would."""

import logging
from dataclasses import dataclass
from typing import NoReturn

from codehub.db.session import Database
from codehub.db.sweeps import load_expected
from codehub.domain.conditions import WorkspaceId
from codehub.ports import Changes, Convergence
from codehub.services.outages import is_outage

log = logging.getLogger("worker.change_watcher")


@dataclass(frozen=True)
class Watcher:
    """Whatever it misses costs one period of the sweep, nothing else."""

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
                log.warning("could not look at %s at once: %s", workspace_id, error)
        raise AssertionError("changes are followed for ever")

    async def _wake(self, workspace_id: WorkspaceId) -> None:
        async with self.database.transaction() as session:
            expected = await load_expected(session, [workspace_id])
        for each in expected:
            # While an operation runs, its own workflow is looking.
            if not each.busy:
                await self.convergence.wake(each.workspace_id, each.owner_id)
