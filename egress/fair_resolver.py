"""Shares the resolver fairly among workspaces."""

import asyncio
from collections.abc import Sequence
from weakref import WeakValueDictionary

from codehub.domain.conditions import WorkspaceId
from codehub.domain.egress import Address
from egress.dialer import Resolve


class FairResolver:
    """Runs a few lookups per workspace at a time; the workspace's other lookups wait.

    A lookup occupies a thread until it ends, even after its caller has given up. So a workspace that looks up
    names at an unresponsive server uses up only its own share.
    """

    def __init__(self, resolve: Resolve, lookups_per_workspace: int) -> None:
        self._resolve = resolve
        self._lookups = lookups_per_workspace
        self._shares: WeakValueDictionary[WorkspaceId, asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, workspace_id: WorkspaceId, host: str) -> Sequence[Address]:
        share = self._shares.setdefault(workspace_id, asyncio.Semaphore(self._lookups))
        await share.acquire()
        lookup = asyncio.ensure_future(self._resolve(host))

        def end(ended: asyncio.Future[Sequence[Address]]) -> None:
            share.release()
            if not ended.cancelled():
                # Retrieve the exception: nobody else does if the caller has given up.
                ended.exception()

        lookup.add_done_callback(end)
        return await asyncio.shield(lookup)
