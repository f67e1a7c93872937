"""Leaving an error, and taking a deletion back."""

from fastapi import APIRouter, Response

from api.context import Provided
from api.parameters import WorkspacePath, load_again
from api.routers.workspaces import answer_workspace
from api.schemas.workspaces import Recover, Workspace
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import GuardedRoute
from codehub.services.deletion import undelete_workspace
from codehub.services.recovery import request_recovery

router = APIRouter(prefix=f"{API}/workspaces/{{workspace_id}}", route_class=GuardedRoute, tags=["workspaces"])


@router.post("/recover", status_code=202, response_model=Workspace, summary="Recover from an error")
async def recover(
    workspace_id: WorkspacePath, caller: SignedInCaller, context: Provided, form: Recover | None = None
) -> Response:
    """Looks again and goes on. For lost or damaged files, choose from the workspace's `recover.choices`."""
    await request_recovery(
        context.database,
        workspace_id,
        form.choice if form else None,
        archive=form.archive if form else None,
        context=context.request_by(caller),
    )
    view = await load_again(context, workspace_id)
    context.waker.wake(workspace_id, str(view.owner_user_id))
    return answer_workspace(view, context, 202)


@router.post("/undelete", status_code=202, response_model=Workspace, summary="Take a deletion back")
async def undelete(workspace_id: WorkspacePath, caller: SignedInCaller, context: Provided) -> Response:
    """It comes back as ARCHIVED, as long as its last archive has not been removed."""
    await undelete_workspace(context.database, workspace_id, context=context.request_by(caller))
    view = await load_again(context, workspace_id)
    context.waker.wake(workspace_id, str(view.owner_user_id))
    return answer_workspace(view, context, 202)
