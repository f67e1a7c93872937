"""Live events."""

from fastapi import APIRouter, Response
from starlette.responses import StreamingResponse

from api.context import ApiContext
from api.errors import too_many_requests
from api.live.client import EVENT_STREAM, EventStream
from api.parameters import LastEventId
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import GuardedRoute

router = APIRouter(prefix=API, route_class=GuardedRoute, tags=["events"])

# Enough for the tabs of one person; more is a program that forgets to close them.
MAX_STREAMS = 100
RETRY_SECONDS = 30
EXAMPLE = (
    'event: workspace_updated\nid: 5f1d\ndata: {"id":"0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44"}\n\n'
    'event: workspace_progress\ndata: {"id":"0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44","operation":"ARCHIVING",'
    '"step":"upload","done":1048576,"total":4194304,"unit":"bytes","at":"2026-11-16T09:30:02Z"}\n\n'
)


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}, "example": EXAMPLE}}}},
    summary="Follow my workspaces",
)
async def follow_events(
    caller: SignedInCaller, context: ApiContext, last_event_id: LastEventId = None
) -> Response:
    """Send server-sent events: `snapshot`, then `workspace_updated`, `workspace_deleted` and `heartbeat`.

    `workspace_progress` is sent at most once a second while an operation makes progress; it has no id.
    """
    if context.hub.streams_of(caller.user_id) >= MAX_STREAMS:
        message = f"You already have {MAX_STREAMS} event streams open. Close one first."
        raise too_many_requests(message, RETRY_SECONDS)
    return EventStream(context.hub.connect(caller.user_id, str(caller.credential_id), last_event_id))
