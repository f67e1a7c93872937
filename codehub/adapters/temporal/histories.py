"""What Temporal remembers of operations."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from codehub import contracts
from codehub.adapters.temporal.steps import Run, steps_of
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason, Operation
from codehub.ports import StepRecord

TIMEOUT_SECONDS = 3.0
# By how much the clocks of workers and server may differ.
SLACK = timedelta(minutes=1)
MOST_RUNS = 50


class TemporalHistories:
    """A `Histories`; the client may be a lazy one."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read_steps(
        self, workspace_id: WorkspaceId, operation: Operation, claimed_at: datetime, ended_at: datetime | None
    ) -> Sequence[StepRecord]:
        query = _query(contracts.workflow_id_of(workspace_id, operation), claimed_at, ended_at)
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                found = self._client.list_workflows(query, limit=MOST_RUNS)
                executions = sorted([each async for each in found], key=lambda each: each.start_time)
                runs = await asyncio.gather(*(self._read(each, claimed_at) for each in executions))
        # A lazy client that cannot connect raises RuntimeError.
        except (RPCError, RuntimeError, TimeoutError) as error:
            raise Transient(ErrorReason.UNREACHABLE, f"Temporal cannot be asked: {error}") from error
        attempts = enumerate((run for run in runs if run is not None), start=1)
        return [step for number, run in attempts for step in steps_of(run, number)]

    async def _read(self, execution: WorkflowExecution, claimed_at: datetime) -> Run | None:
        """None for one that belongs to another claim, or has been forgotten since it was listed."""
        handle = self._client.get_workflow_handle(execution.id, run_id=execution.run_id)
        try:
            described = await handle.describe()
            events = [event async for event in handle.fetch_history_events()]
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
        started = events[0].workflow_execution_started_event_attributes
        [request] = await self._client.data_converter.decode(started.input.payloads)
        if datetime.fromisoformat(request["claimed_at"]) != claimed_at:
            return None
        return Run(events, described.raw_description.pending_activities, described.close_time)


def _query(workflow_id: str, claimed_at: datetime, ended_at: datetime | None) -> str:
    query = f'WorkflowId = "{workflow_id}" AND StartTime >= "{(claimed_at - SLACK).isoformat()}"'
    return query if ended_at is None else f'{query} AND StartTime <= "{(ended_at + SLACK).isoformat()}"'
