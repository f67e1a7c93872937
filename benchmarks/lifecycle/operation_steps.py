"""The duration of each step of an operation, from Temporal's histories."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory

from codehub.contracts import workspace_workflow_id
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import Operation

STARTED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED
TASK_STARTED = EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
TASK_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
ACTIVITY_SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
ACTIVITY_STARTED = EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
ACTIVITY_COMPLETED = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
COMPLETED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED

STEPS = (
    "request: one transaction",
    "wake: one call to Temporal",
    "first workflow task reaches the worker",
    "observe (row, providers, S3) and claim",
    "Temporal starts the child workflow",
    "child's workflow task",
    "activity reaches the worker",
    "activity: fence, then the provider",
    "child's last workflow task",
    "parent's workflow task reaches the worker",
    "settle: observe again, write the row; noticed",
)


async def step_times(
    client: Client,
    workspace_id: WorkspaceId,
    operation: Operation,
    requested: Sequence[datetime],
    noticed: datetime,
) -> list[float]:
    """Return the seconds of each step; `requested` is when the request began and ended."""
    workflow_id = workspace_workflow_id(workspace_id)
    parent = await client.get_workflow_handle(workflow_id).fetch_history()
    child = await client.get_workflow_handle(f"{workflow_id}-{operation.lower()}").fetch_history()
    moments = [
        *requested,
        _first(parent, STARTED),
        _first(parent, TASK_STARTED),
        _first(parent, TASK_COMPLETED),
        _first(child, STARTED),
        _first(child, ACTIVITY_SCHEDULED),
        _first(child, ACTIVITY_STARTED),
        _first(child, ACTIVITY_COMPLETED),
        _first(child, COMPLETED),
        _last_task_before(parent, noticed),
        noticed,
    ]
    return [(after - before).total_seconds() for before, after in pairwise(moments)]


def _first(history: WorkflowHistory, kind: EventType.ValueType) -> datetime:
    return next(_moment(event.event_time) for event in history.events if event.event_type == kind)


def _last_task_before(history: WorkflowHistory, noticed: datetime) -> datetime:
    """Return the start of the task that settled the operation."""
    started = [_moment(each.event_time) for each in history.events if each.event_type == TASK_STARTED]
    return max(each for each in started if each < noticed)


def _moment(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)
