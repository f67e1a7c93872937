"""The workspace that a path names; the gate has looked at it already."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path

from api.context import Context
from codehub.db.views import WorkspaceView, load_view
from codehub.domain.conditions import WorkspaceId
from codehub.services.errors import WorkspaceNotFound


def _named(workspace_id: Annotated[UUID, Path(description="The id of a workspace.")]) -> WorkspaceId:
    return WorkspaceId(str(workspace_id))


WorkspacePath = Annotated[WorkspaceId, Depends(_named)]


async def load_or_refuse(context: Context, workspace_id: WorkspaceId) -> WorkspaceView:
    async with context.database.transaction() as session:
        view = await load_view(session, workspace_id)
    if view is None:
        raise WorkspaceNotFound(workspace_id)
    return view
