"""How far a workspace is, and when it was used."""

from datetime import timedelta

from fastapi import APIRouter, Response

from api.context import Provided
from api.live.progress import view_of
from api.parameters import SeenWorkspace
from api.responses import json_response
from api.schemas.progress import Activity, CurrentProgress
from api.security.access import API
from api.security.guard import GuardedRoute
from codehub.db.usage import BUCKET, bucket_of, list_usage
from codehub.domain.states import Operation
from codehub.services.convergence import progress_since

router = APIRouter(prefix=f"{API}/workspaces/{{workspace_id}}", route_class=GuardedRoute, tags=["history"])

SHOWN = timedelta(days=1)


@router.get("/progress", response_model=CurrentProgress, summary="Progress")
async def read_progress(workspace: SeenWorkspace, context: Provided) -> Response:
    """The step under way; live events tell the same as it moves."""
    if workspace.operation is Operation.NONE:
        return json_response(CurrentProgress(progress=None))
    now = context.now()
    found = await progress_since(context.board, workspace.workspace_id, workspace.op_started_at, now)
    view = view_of(workspace.workspace_id, workspace.operation, found, now) if found else None
    return json_response(CurrentProgress(progress=view))


@router.get("/activity", response_model=Activity, summary="Use in the last day")
async def read_activity(workspace: SeenWorkspace, context: Provided) -> Response:
    """In which quarters of an hour of the last 24 h somebody used it; the latest comes a minute late."""
    since = bucket_of(context.now() - SHOWN) + BUCKET
    async with context.reading.transaction() as session:
        used = await list_usage(session, workspace.workspace_id, since)
    return json_response(Activity(bucket_seconds=round(BUCKET.total_seconds()), since=since, used=used))
