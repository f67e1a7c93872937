"""The workspace that a path names; the gate has looked at it already."""

from typing import Annotated, cast
from uuid import UUID

from fastapi import Depends, Path, Request

from api.context import Context
from codehub.db.views import WorkspaceView, load_any_view
from codehub.domain.conditions import WorkspaceId
from codehub.services.errors import WorkspaceNotFound


async def _named(workspace_id: Annotated[UUID, Path(description="The id of a workspace.")]) -> WorkspaceId:
    return WorkspaceId(str(workspace_id))


WorkspacePath = Annotated[WorkspaceId, Depends(_named)]


async def _seen(workspace_id: WorkspacePath, request: Request) -> WorkspaceView:
    view = cast("WorkspaceView", request.state.workspace)
    if not view.is_visible:
        raise WorkspaceNotFound(workspace_id)
    return view


# As it was when the gate looked; a route that changes it reads it again.
SeenWorkspace = Annotated[WorkspaceView, Depends(_seen)]


async def load_again(context: Context, workspace_id: WorkspaceId) -> WorkspaceView:
    """As it is now; also one that is DELETED by now."""
    async with context.reading.transaction() as session:
        view = await load_any_view(session, workspace_id)
    if view is None:
        raise WorkspaceNotFound(workspace_id)
    return view
