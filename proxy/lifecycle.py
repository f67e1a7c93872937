"""Requests to change a workspace, made from the proxy's pages; the API's rules apply."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from codehub.backoff import delay_after
from codehub.db.session import Database
from codehub.db.views import WorkspaceView
from codehub.domain.conditions import WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState
from codehub.services.convergence import Waker
from codehub.services.deletion import delete_workspace, undelete_workspace
from codehub.services.errors import LimitExceeded, OperationInProgress
from codehub.services.identity import Caller
from codehub.services.recovery import request_recovery
from codehub.services.requests import RequestContext
from codehub.services.workspaces import request_state

FIRST_DELAY_SECONDS = 0.1
LONGEST_DELAY_SECONDS = 1.0
# Enough for a running slot that is being freed; after that, a page explains more than waiting does.
RETRY_SECONDS = 8.0
# Every request for an IDE that does not answer asks for a check.
CHECK_EVERY_SECONDS = 5.0


@dataclass
class Lifecycle:
    """Writes the row, then wakes the workflow."""

    database: Database
    waker: Waker
    limits: RunningLimits
    wakes: int = 0
    _checked_at: dict[WorkspaceId, float] = field(default_factory=dict)

    async def start(self, caller: Caller, view: WorkspaceView) -> None:
        """Request RUNNING; retry briefly while an operation ends or a running slot is freed.

        Raise OperationInProgress or LimitExceeded after that.
        """
        await _retry(lambda: self._request(caller, view, DesiredState.RUNNING))
        self.wakes += 1

    async def stop(self, caller: Caller, view: WorkspaceView) -> None:
        await self._request(caller, view, DesiredState.STANDBY)

    async def recover(
        self, caller: Caller, view: WorkspaceView, choice: RecoverChoice | None, archive: UUID | None = None
    ) -> None:
        await request_recovery(
            self.database,
            view.workspace_id,
            choice,
            archive=archive,
            context=self._request_by(caller),
        )
        self._wake(view)

    async def undelete(self, caller: Caller, view: WorkspaceView) -> None:
        await undelete_workspace(self.database, view.workspace_id, context=self._request_by(caller))
        self._wake(view)

    async def purge(self, caller: Caller, view: WorkspaceView) -> None:
        await delete_workspace(self.database, view.workspace_id, purge=True, context=self._request_by(caller))
        self._wake(view)

    def request_check(self, view: WorkspaceView) -> None:
        """Have an instance that does not answer checked now, before the next sweep."""
        now = time.monotonic()
        if now - self._checked_at.get(view.workspace_id, -CHECK_EVERY_SECONDS) < CHECK_EVERY_SECONDS:
            return
        self._checked_at = {key: at for key, at in self._checked_at.items() if now - at < CHECK_EVERY_SECONDS}
        self._checked_at[view.workspace_id] = now
        self._wake(view)

    async def _request(self, caller: Caller, view: WorkspaceView, desired: DesiredState) -> None:
        await request_state(
            self.database,
            view.workspace_id,
            desired,
            context=self._request_by(caller),
        )
        self._wake(view)

    def _request_by(self, caller: Caller) -> RequestContext:
        return RequestContext(caller.username, self.limits, datetime.now(UTC), caller.user_id)

    def _wake(self, view: WorkspaceView) -> None:
        self.waker.wake(view.workspace_id, str(view.owner_user_id))


async def _retry(request: Callable[[], Awaitable[None]]) -> None:
    deadline = time.monotonic() + RETRY_SECONDS
    failures = 0
    while True:
        try:
            return await request()
        except (OperationInProgress, LimitExceeded) as refused:
            if not _ends_soon(refused) or time.monotonic() > deadline:
                raise
        failures += 1
        await asyncio.sleep(delay_after(failures, FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS))


def _ends_soon(refused: OperationInProgress | LimitExceeded) -> bool:
    if isinstance(refused, OperationInProgress):
        return True
    return any(each.is_stopping for each in refused.running)
