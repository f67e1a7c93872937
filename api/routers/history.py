"""What has happened to a workspace: operations, steps, audit trail, archives, the log of its instance."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from starlette.responses import StreamingResponse

from api.context import Context, Provided
from api.errors import ApiError
from api.log_streams import begin
from api.parameters import SeenWorkspace
from api.responses import decode_number, json_response
from api.routers.workspaces import Cursor, PageSize
from api.schemas.errors import Code
from api.schemas.history import (
    ArchiveItem,
    ArchiveList,
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
from codehub.domain.conditions import WorkspaceId
from codehub.domain.history import OperationRecord, OperationResult

router = APIRouter(prefix=f"{API}/workspaces/{{workspace_id}}", route_class=GuardedRoute, tags=["history"])

PLAIN_TEXT = "text/plain; charset=utf-8"
NOT_BEGUN = "No step has begun yet."
FORGOTTEN = "Temporal remembers no steps of it any more; the audit trail tells what came of it."
OperationId = Annotated[int, Path(ge=1, le=LAST_BIGINT, description="The id of an operation.")]
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
