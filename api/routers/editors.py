"""What a new workspace can be opened with."""

from fastapi import APIRouter, Response

from api.context import Provided
from api.responses import json_response
from api.schemas.editors import Editor, EditorList
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import GuardedRoute

router = APIRouter(prefix=API, route_class=GuardedRoute, tags=["workspaces"])


@router.get("/editors", response_model=EditorList, summary="Editors to choose from")
async def list_editors(caller: SignedInCaller, context: Provided) -> Response:
    """What is installed where workspaces run as processes; the configured image where they are containers."""
    del caller
    editors = context.options.editors
    items = [Editor(image_ref=each, default=each == editors.default) for each in editors.names]
    return json_response(EditorList(items=items, other_images=editors.other_images))
