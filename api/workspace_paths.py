"""The workspace that a path names; the gate has looked at it already."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path

from api.context import Context
from codehub.db.views import ViewFilter, WorkspaceView, list_views, load_owner, load_view
from codehub.domain.conditions import WorkspaceId
from codehub.services.errors import WorkspaceNotFound


async def _named(workspace_id: Annotated[UUID, Path(description="The id of a workspace.")]) -> WorkspaceId:
    return WorkspaceId(str(workspace_id))


DELETED_AT_ONCE = 500

WorkspacePath = Annotated[WorkspaceId, Depends(_named)]


async def load_or_refuse(context: Context, workspace_id: WorkspaceId) -> WorkspaceView:
    async with context.reading.transaction() as session:
        view = await load_view(session, workspace_id)
    if view is None:
        raise WorkspaceNotFound(workspace_id)
    return view


async def load_also_deleted(context: Context, workspace_id: WorkspaceId) -> WorkspaceView:
    """Also one that is DELETED by now."""
    async with context.database.transaction() as session:
        found = await load_view(session, workspace_id)
        wanted = ViewFilter(await load_owner(session, workspace_id), deleted=True)
        after, more = None, True
        while found is None and more:
            page = await list_views(session, wanted, after=after, limit=DELETED_AT_ONCE)
            found = next((each for each in page.items if each.workspace_id == workspace_id), None)
            after, more = page.next, page.next is not None
    if found is None:
        raise WorkspaceNotFound(workspace_id)
    return found
