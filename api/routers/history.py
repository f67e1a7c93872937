"""What has happened to a workspace: operations, steps, audit trail, archives, the log of its instance."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from starlette.responses import StreamingResponse

from api.context import Context, Provided
from api.errors import ApiError
from api.live.progress import progress_view
from api.log_streams import begin
from api.parameters import SeenWorkspace
from api.responses import decode_number, json_response
from api.routers.workspaces import Cursor, PageSize
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
from codehub.db.archive_views import list_archives
from codehub.db.events import LAST_BIGINT, list_events
from codehub.db.operations import list_operations, load_operation
from codehub.db.usage import BUCKET, bucket_of, list_usage
from codehub.domain.conditions import WorkspaceId
from codehub.domain.history import OperationRecord, OperationResult
from codehub.domain.states import Operation
from codehub.services.convergence import progress_since

router = APIRouter(prefix=f"{API}/workspaces/{{workspace_id}}", route_class=GuardedRoute, tags=["history"])

PLAIN_TEXT = "text/plain; charset=utf-8"
NOT_BEGUN = "No step has begun yet."
FORGOTTEN = "Temporal remembers no steps of it any more; the audit trail tells what came of it."
OperationId = Annotated[int, Path(ge=1, le=LAST_BIGINT, description="The id of an operation.")]
SHOWN = timedelta(days=1)
LOG_EXAMPLE = "[2026-11-16 09:30:04] The IDE listens.\n"


@router.get("/operations", response_model=OperationPage, summary="Operations")
async def read_operations(
    workspace: SeenWorkspace, context: Provided, cursor: Cursor = None, limit: PageSize = 50
) -> Response:
    """Each from its claim to its end, newest first, with a link into the Temporal Web UI."""
    async with context.database.transaction() as session:
        before = decode_number(cursor)
        records = await list_operations(session, workspace.workspace_id, before=before, limit=limit)
    items = [_operation_item(record, workspace.workspace_id, context) for record in records]
    last = str(records[-1].event_id) if len(records) == limit else None
    return json_response(OperationPage(items=items, next_cursor=last))


@router.get("/operations/{operation_id}/steps", response_model=StepList, summary="Steps of an operation")
async def read_steps(workspace: SeenWorkspace, operation_id: OperationId, context: Provided) -> Response:
    """Of all attempts, in order, as long as Temporal remembers them."""
    async with context.reading.transaction() as session:
        record = await load_operation(session, workspace.workspace_id, operation_id)
    if record is None:
        raise ApiError(404, Code.NOT_FOUND, "There is no such operation of this workspace.")
    steps = await context.histories.read_steps(
        workspace.workspace_id, record.operation, record.started_at, record.ended_at
    )
    items = [StepItem.model_validate(step, from_attributes=True) for step in steps]
    missing = NOT_BEGUN if record.result is OperationResult.RUNNING else FORGOTTEN
    return json_response(StepList(items=items, hint=None if items else missing))


@router.get("/events", response_model=EventPage, summary="Audit trail")
async def read_events(
    workspace: SeenWorkspace, context: Provided, cursor: Cursor = None, limit: PageSize = 50
) -> Response:
    """Who asked for what, and what was done, newest first."""
    async with context.database.transaction() as session:
        events = await list_events(session, workspace.workspace_id, before=decode_number(cursor), limit=limit)
    items = [EventItem.model_validate(event, from_attributes=True) for event in events]
    last = str(events[-1].id) if len(events) == limit else None
    return json_response(EventPage(items=items, next_cursor=last))


@router.get("/archives", response_model=ArchiveList, summary="Archives")
async def read_archives(workspace: SeenWorkspace, context: Provided) -> Response:
    """Newest first; one that nothing needs is removed after a while."""
    async with context.database.transaction() as session:
        archives = await list_archives(session, workspace.workspace_id)
    items = [ArchiveItem.model_validate(archive, from_attributes=True) for archive in archives]
    return json_response(ArchiveList(items=items))


@router.get(
    "/logs",
    response_class=StreamingResponse,
    responses={200: {"content": {PLAIN_TEXT: {"schema": {"type": "string"}, "example": LOG_EXAMPLE}}}},
    summary="Log of the instance",
)
async def read_logs(
    workspace: SeenWorkspace,
    context: Provided,
    tail: Annotated[int, Query(ge=0, le=10_000, description="How many of the last lines.")] = 200,
    *,
    follow: Annotated[bool, Query(description="Stay, and send what comes.")] = False,
) -> Response:
    """What its IDE has printed; nothing if there is no instance."""
    lines = await begin(context.instances.read_log(workspace.workspace_id, tail=tail, follow=follow))
    # Nobody between us may wait for a buffer to fill.
    return StreamingResponse(lines, media_type=PLAIN_TEXT, headers={"X-Accel-Buffering": "no"})


@router.get("/progress", response_model=CurrentProgress, summary="Progress")
async def read_progress(workspace: SeenWorkspace, context: Provided) -> Response:
    """The step under way; live events tell the same as it moves."""
    if workspace.operation is Operation.NONE:
        return json_response(CurrentProgress(progress=None))
    now = context.now()
    found = await progress_since(context.board, workspace.workspace_id, workspace.op_started_at, now)
    view = progress_view(workspace.workspace_id, workspace.operation, found, now) if found else None
    return json_response(CurrentProgress(progress=view))


@router.get("/activity", response_model=Activity, summary="Use in the last day")
async def read_activity(workspace: SeenWorkspace, context: Provided) -> Response:
    """In which quarters of an hour of the last 24 h somebody used it; the latest comes a minute late."""
    since = bucket_of(context.now() - SHOWN) + BUCKET
    async with context.reading.transaction() as session:
        used = await list_usage(session, workspace.workspace_id, since)
    return json_response(Activity(bucket_seconds=round(BUCKET.total_seconds()), since=since, used=used))


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
