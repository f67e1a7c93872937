"""Wakes a workspace's workflow; its row is written already, so the next sweep heals a lost wake."""

import asyncio
import logging

from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from codehub import contracts
from codehub.adapters.temporal.search_attributes import attributes_of
from codehub.domain.conditions import WorkspaceId

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 3.0


class TemporalConvergence:
    """A `Convergence`; the client may be a lazy one."""

    def __init__(self, client: Client, task_queue: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._client = client
        self._task_queue = task_queue
        self._timeout_seconds = timeout_seconds

    async def wake(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        # The signal makes the server start a run or hand it to the one there is, as one step: a run that is
        # about to complete sees it and goes on.
        await self._start(workspace_id, owner_id, signal=contracts.WAKE_SIGNAL)

    async def resume(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        await self._start(workspace_id, owner_id, signal=None)

    async def _start(self, workspace_id: WorkspaceId, owner_id: str, *, signal: str | None) -> None:
        try:
            # Around everything: a call's own timeout covers neither connecting nor its retries.
            async with asyncio.timeout(self._timeout_seconds):
                await self._start_or_use_existing(workspace_id, owner_id, signal)
        # A lazy client that cannot connect raises RuntimeError.
        except (RPCError, RuntimeError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            log.warning("workspace %s waits for the next sweep, no wake: %s", workspace_id, reason)

    async def _start_or_use_existing(
        self, workspace_id: WorkspaceId, owner_id: str, signal: str | None
    ) -> None:
        await self._client.start_workflow(
            contracts.WORKSPACE_WORKFLOW,
            contracts.ConvergeRequest(workspace_id, owner_id),
            id=contracts.workspace_workflow_id(workspace_id),
            task_queue=self._task_queue,
            start_signal=signal,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            search_attributes=attributes_of(workspace_id, owner_id),
            # Inherited by its operations and their steps: in every queue, owners take turns.
            priority=Priority(fairness_key=owner_id),
            static_summary=f"Brings workspace {workspace_id} to its desired state",
        )
