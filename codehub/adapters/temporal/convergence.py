"""Wakes the workflow of a workspace. The next sweep makes up for a lost wake."""

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
    """A `Convergence`; the client can be lazy."""

    def __init__(self, client: Client, task_queue: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._client = client
        self._task_queue = task_queue
        self._timeout_seconds = timeout_seconds

    async def wake(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        # The server starts a run or signals the existing one atomically: a run that is about to complete
        # sees the signal and goes on.
        await self._start(workspace_id, owner_id, signal=contracts.WAKE_SIGNAL)

    async def resume(self, workspace_id: WorkspaceId, owner_id: str) -> None:
        await self._start(workspace_id, owner_id, signal=None)

    async def _start(self, workspace_id: WorkspaceId, owner_id: str, *, signal: str | None) -> None:
        try:
            # The timeout of a call covers neither connecting nor retries.
            async with asyncio.timeout(self._timeout_seconds):
                await self._start_or_use_existing(workspace_id, owner_id, signal)
        # A lazy client that cannot connect raises RuntimeError.
        except (RPCError, RuntimeError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            log.warning("could not wake workspace %s, the next sweep will: %s", workspace_id, reason)

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
            # Operations and their steps inherit it, so owners take turns in every queue.
            priority=Priority(fairness_key=owner_id),
            static_summary=f"Brings workspace {workspace_id} to its desired state",
        )
