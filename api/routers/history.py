"""History of a workspace: operations, steps, progress, activity, audit trail, archives, instance log."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.responses import StreamingResponse

from api import queries
from api.context import ApiContext, Context
from api.errors import ApiError
from api.live.progress import progress_view
from api.pagination import Cursor, PageSize
from api.parameters import LoadedWorkspace, OperationId
from api.responses import json_response, start_log
from api.schemas.errors import Code
from api.schemas.history import (
    Activity,
    ArchiveItem,
    ArchiveList,
    CurrentProgress,
    EventItem,
    EventPage,
    OperationItem,
    OperationPage,
    StepItem,
    StepList,
)
from api.security.access import API
from api.security.guard import GuardedRoute
from codehub.domain.conditions import WorkspaceId
from codehub.domain.history import OperationRecord, OperationResult
from codehub.domain.states import Operation
from codehub.services.convergence import progress_since

router = APIRouter(prefix=f"{API}/workspaces/{{workspace_id}}", route_class=GuardedRoute, tags=["history"])

PLAIN_TEXT = "text/plain; charset=utf-8"
NOT_BEGUN = "No step has begun yet."
FORGOTTEN = "Temporal no longer has the steps of this operation. The audit trail shows its result."
LOG_EXAMPLE = "[2026-11-16 09:30:04] The IDE listens.\n"


@router.get("/operations", response_model=OperationPage, summary="List operations")
async def read_operations(
    workspace: LoadedWorkspace, context: ApiContext, cursor: Cursor = None, limit: PageSize = 50
) -> Response:
    """Return operations from claim to end, newest first, with links to the Temporal Web UI."""
    records = await queries.list_operations(context, workspace.workspace_id, cursor=cursor, limit=limit)
    items = [_operation_item(record, workspace.workspace_id, context) for record in records]
    last = str(records[-1].event_id) if len(records) == limit else None
    return json_response(OperationPage(items=items, next_cursor=last))


@router.get("/operations/{operation_id}/steps", response_model=StepList, summary="List steps of an operation")
async def read_steps(workspace: LoadedWorkspace, operation_id: OperationId, context: ApiContext) -> Response:
    """Return the steps of all attempts, in order, as long as Temporal keeps them."""
    record = await queries.load_operation(context, workspace.workspace_id, operation_id)
    if record is None:
        raise ApiError(404, Code.NOT_FOUND, "This workspace has no such operation.")
    steps = await context.histories.read_steps(
        workspace.workspace_id, record.operation, record.started_at, record.ended_at
    )
    items = [StepItem.model_validate(step, from_attributes=True) for step in steps]
    missing = NOT_BEGUN if record.result is OperationResult.RUNNING else FORGOTTEN
    return json_response(StepList(items=items, hint=None if items else missing))


@router.get("/progress", response_model=CurrentProgress, summary="Read progress")
async def read_progress(workspace: LoadedWorkspace, context: ApiContext) -> Response:
    """Return the progress of the running step; live events send the same whenever it changes."""
    if workspace.operation is Operation.NONE:
        return json_response(CurrentProgress(progress=None))
    now = context.now()
    found = await progress_since(context.board, workspace.workspace_id, workspace.op_started_at, now)
    view = progress_view(workspace.workspace_id, workspace.operation, found, now) if found else None
    return json_response(CurrentProgress(progress=view))


@router.get("/activity", response_model=Activity, summary="Read recent activity")
async def read_activity(workspace: LoadedWorkspace, context: ApiContext) -> Response:
    """Return the quarter hours of the last 24 hours in which somebody used it, up to a minute late."""
    return json_response(await queries.read_activity(context, workspace.workspace_id))


@router.get("/events", response_model=EventPage, summary="Read the audit trail")
async def read_events(
    workspace: LoadedWorkspace, context: ApiContext, cursor: Cursor = None, limit: PageSize = 50
) -> Response:
    """Return who requested what, and what was done, newest first."""
    events = await queries.list_events(context, workspace.workspace_id, cursor=cursor, limit=limit)
    items = [EventItem.model_validate(event, from_attributes=True) for event in events]
    last = str(events[-1].id) if len(events) == limit else None
    return json_response(EventPage(items=items, next_cursor=last))


@router.get("/archives", response_model=ArchiveList, summary="List archives")
async def read_archives(workspace: LoadedWorkspace, context: ApiContext) -> Response:
    """Return archives, newest first; those that are no longer needed are removed after a while."""
    archives = await queries.list_archives(context, workspace.workspace_id)
    items = [ArchiveItem.model_validate(archive, from_attributes=True) for archive in archives]
    return json_response(ArchiveList(items=items))


@router.get(
    "/logs",
    response_class=StreamingResponse,
    responses={200: {"content": {PLAIN_TEXT: {"schema": {"type": "string"}, "example": LOG_EXAMPLE}}}},
    summary="Read the log of the instance",
)
async def read_logs(
    workspace: LoadedWorkspace,
    context: ApiContext,
    tail: Annotated[int, Query(ge=0, le=10_000, description="How many of the last lines.")] = 200,
    *,
    follow: Annotated[bool, Query(description="Keep the response open and send new lines.")] = False,
) -> Response:
    """Return the output of the IDE, or nothing if there is no instance."""
    lines = await start_log(context.instances.read_log(workspace.workspace_id, tail=tail, follow=follow))
    # No proxy on the way may wait for a full buffer.
    return StreamingResponse(lines, media_type=PLAIN_TEXT, headers={"X-Accel-Buffering": "no"})


def _operation_item(record: OperationRecord, workspace_id: WorkspaceId, context: Context) -> OperationItem:
    ended = record.ended_at or context.now()
    query = (
        f'WorkspaceId = "{workspace_id}" AND Operation = "{record.operation}" '
        f'AND StartTime >= "{record.started_at.isoformat(timespec="milliseconds")}"'
    )
    if record.ended_at is not None:
        query += f' AND StartTime <= "{record.ended_at.isoformat(timespec="milliseconds")}"'
    return OperationItem(
        id=record.event_id,
        operation=record.operation,
        result=record.result,
        started_at=record.started_at,
        ended_at=record.ended_at,
        duration_seconds=round((ended - record.started_at).total_seconds(), 3),
        attempts=record.attempts,
        error_reason=record.error_reason,
        message=record.message,
        temporal_url=context.options.temporal_url_of(query),
    )
