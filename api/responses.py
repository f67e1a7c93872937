"""Responses: documents encoded once, and logs sent line by line."""

import asyncio
import logging
from collections.abc import AsyncIterator

from pydantic import BaseModel
from starlette.responses import Response

from api.context import Context
from api.pagination import encode_position
from api.schemas.workspaces import WorkspacePage
from api.serializers import etag_of, serialize
from codehub.db.views import ViewPage, WorkspaceView
from codehub.domain.failures import Failure

log = logging.getLogger(__name__)

JSON = "application/json"
# A followed log may be silent for hours, and its reader wants to know that it is connected.
FIRST_LINE_SECONDS = 2.0


def json_response(document: BaseModel, status: int = 200, **headers: str) -> Response:
    """Encode a document; FastAPI would validate and encode a returned model a second time."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(document.model_dump_json(), status, headers=names, media_type=JSON)


def workspace_response(view: WorkspaceView, context: Context, status: int = 200, **headers: str) -> Response:
    return json_response(serialize(view, context), status, ETag=etag_of(view.version), **headers)


def workspace_page_response(page: ViewPage, context: Context) -> Response:
    items = [serialize(view, context) for view in page.items]
    return json_response(WorkspacePage(items=items, next_cursor=encode_position(page.next)))


async def start_log(
    lines: AsyncIterator[bytes], first_line_seconds: float = FIRST_LINE_SECONDS
) -> AsyncIterator[bytes]:
    """Return the same lines, but raise an early failure now, while it can still become an error response."""
    first = asyncio.ensure_future(anext(lines, None))
    try:
        await asyncio.wait({first}, timeout=first_line_seconds)
        if first.done():
            first.result()
    except BaseException:
        first.cancel()
        raise
    return _continue_log(first, lines)


async def _continue_log(
    first: asyncio.Future[bytes | None], lines: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    try:
        content = await first
        while content is not None:
            yield content
            content = await anext(lines, None)
    except Failure as failure:
        # The response has begun, so it can only be ended.
        log.warning("a log ended early: %s", failure)
    finally:
        first.cancel()
