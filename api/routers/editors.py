"""The IDEs that a new workspace can be created with."""

from fastapi import APIRouter, Response

from api.context import ApiContext
from api.responses import json_response
from api.schemas.workspaces import Editor, EditorList
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import GuardedRoute

router = APIRouter(prefix=API, route_class=GuardedRoute, tags=["workspaces"])


@router.get("/editors", response_model=EditorList, summary="List IDEs")
async def list_editors(caller: SignedInCaller, context: ApiContext) -> Response:
    """Return the installed IDEs if workspaces run as processes, or the configured image for containers."""
    del caller
    editors = context.options.editors
    items = [Editor(image_ref=each, default=each == editors.default) for each in editors.names]
    return json_response(EditorList(items=items, other_images=editors.other_images))
