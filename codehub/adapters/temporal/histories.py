"""Reads the steps of an operation from the history of its workflow."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from codehub import contracts
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason, Operation
from codehub.ports import StepRecord, StepResult

ENDS = {
    "activity_task_completed_event_attributes": StepResult.COMPLETED,
    "activity_task_failed_event_attributes": StepResult.FAILED,
    "activity_task_timed_out_event_attributes": StepResult.FAILED,
    "activity_task_canceled_event_attributes": StepResult.CANCELLED,
}
LOCAL_ACTIVITY = "core_local_activity"


@dataclass(frozen=True)
class OperationRun:
    """One workflow run of an operation: its history, its pending activities and when it ended."""

    events: Sequence[HistoryEvent]
    pending: Sequence[PendingActivityInfo]
    closed_at: datetime | None


def read_run(run: OperationRun, operation_attempt: int) -> list[StepRecord]:
    """Return the steps in the order in which they began."""
    steps = _Steps(operation_attempt)
    for event in run.events:
        steps.take(event)
    for info in run.pending:
        steps.take_pending(info)
    return steps.list(run.closed_at)


class _Steps:
    """The steps of a run so far, by the id of the event that scheduled each."""

    def __init__(self, operation_attempt: int) -> None:
        self._operation_attempt = operation_attempt
        self._steps: dict[int, StepRecord] = {}
        self._event_ids: dict[str, int] = {}

    def take(self, event: HistoryEvent) -> None:
        kind = event.WhichOneof("attributes")
        at = event.event_time.ToDatetime(UTC)
        if kind == "activity_task_scheduled_event_attributes":
            self._schedule(event, at)
        elif kind == "activity_task_started_event_attributes":
            started = event.activity_task_started_event_attributes
            error = _message(started.last_failure)
            self._change(started.scheduled_event_id, started_at=at, attempts=started.attempt, error=error)
        elif kind == "marker_recorded_event_attributes":
            self._take_marker(event, at)
        elif kind in ENDS:
            self._end(getattr(event, kind), ENDS[kind], at)

    def take_pending(self, info: PendingActivityInfo) -> None:
        """Add a pending activity, unless the history already has its end."""
        event_id = self._event_ids.get(info.activity_id)
        if event_id is None or self._steps[event_id].ended_at is not None:
            return
        started_at = info.last_started_time.ToDatetime(UTC) if info.HasField("last_started_time") else None
        error = _message(info.last_failure)
        self._change(event_id, started_at=started_at, attempts=max(1, info.attempt), error=error)

    def list(self, closed_at: datetime | None) -> list[StepRecord]:
        """Return all steps; a step without an end was cancelled when the run ended."""
        return [
            replace(step, result=StepResult.CANCELLED, ended_at=closed_at)
            if closed_at is not None and step.ended_at is None
            else step
            for step in self._steps.values()
        ]

    def _schedule(self, event: HistoryEvent, at: datetime) -> None:
        scheduled = event.activity_task_scheduled_event_attributes
        self._event_ids[scheduled.activity_id] = event.event_id
        self._steps[event.event_id] = StepRecord(
            scheduled.activity_type.name, self._operation_attempt, StepResult.RUNNING, at
        )

    def _end(self, ended: Any, result: StepResult, at: datetime) -> None:  # noqa: ANN401 (one of four)
        event_id = ended.scheduled_event_id
        error = _message(ended.failure) if result is StepResult.FAILED else self._steps[event_id].error
        self._change(event_id, result=result, ended_at=at, error=error)

    def _take_marker(self, event: HistoryEvent, at: datetime) -> None:
        """Add a local activity, which leaves only a marker when it ends."""
        marker = event.marker_recorded_event_attributes
        if marker.marker_name != LOCAL_ACTIVITY:
            return
        failed = marker.HasField("failure")
        data = json.loads(marker.details["data"].payloads[0].data)
        began_at = _to_datetime(data["original_schedule_time"])
        self._steps[event.event_id] = StepRecord(
            name=data["activity_type"],
            operation_attempt=self._operation_attempt,
            result=StepResult.FAILED if failed else StepResult.COMPLETED,
            scheduled_at=began_at,
            started_at=began_at,
            # The end is by another clock and can be before the beginning.
            ended_at=max(began_at, at),
            attempts=data["attempt"],
            error=_message(marker.failure) if failed else None,
        )

    def _change(self, event_id: int, **fields: Any) -> None:  # noqa: ANN401
        self._steps[event_id] = replace(self._steps[event_id], **fields)


def _message(failure: Failure) -> str | None:
    return failure.message or None


def _to_datetime(timestamp: dict[str, int]) -> datetime:
    return datetime.fromtimestamp(timestamp["seconds"] + timestamp["nanos"] / 1e9, UTC)


TIMEOUT_SECONDS = 3.0
# The clocks of workers and the server can differ by this much.
SLACK = timedelta(minutes=1)
MOST_RUNS = 50


class TemporalHistories:
    """A `Histories`; the client can be lazy."""

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
            raise Transient(ErrorReason.UNREACHABLE, f"Temporal cannot be reached: {error}") from error
        attempts = enumerate((run for run in runs if run is not None), start=1)
        return [step for number, run in attempts for step in read_run(run, number)]

    async def _read(self, execution: WorkflowExecution, claimed_at: datetime) -> OperationRun | None:
        """Return None for a run of another claim, or one that was removed after the listing."""
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
        return OperationRun(events, described.raw_description.pending_activities, described.close_time)


def _query(workflow_id: str, claimed_at: datetime, ended_at: datetime | None) -> str:
    query = f'WorkflowId = "{workflow_id}" AND StartTime >= "{(claimed_at - SLACK).isoformat()}"'
    return query if ended_at is None else f'{query} AND StartTime <= "{(ended_at + SLACK).isoformat()}"'
