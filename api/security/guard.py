"""The guard in front of every route: authentication, rate limit, media type, access; in this order."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from api.context import Context, context_of
from api.errors import ApiError, too_many_requests
from api.queries import load_workspace
from api.request_bodies import limit_body, require_json
from api.schemas.base import is_id
from api.schemas.errors import Code
from api.security.access import ACCESS, Access
from api.security.authentication import authenticate
from codehub.domain.conditions import WorkspaceId
from codehub.services.errors import WorkspaceNotFound
from codehub.services.identity import Caller

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

NOT_SIGNED_IN = "Sign in, or send a valid personal token."
NOT_ADMIN = "Only administrators may do this."
NOT_OWNER = "This workspace belongs to another user."
TOO_FAST = "You are sending requests too fast. Wait before you send more."


class GuardedRoute(APIRoute):
    """A route whose handler runs only if the guard admits the request; the body is not read before."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        (access,) = {ACCESS[method, self.path_format] for method in self.methods or ()}

        async def guarded(request: Request) -> Response:
            await admit(request, access)
            return await handle(limit_body(request, context_of(request).options.max_body_bytes))

        return guarded


async def admit(request: Request, access: Access) -> None:
    """Store the caller and the workspace in the request's state, or raise an ApiError."""
    context = context_of(request)
    if access is Access.PUBLIC:
        require_json(request)
        return
    caller = await authenticate(request, context)
    _limit_rate(request, context, caller)
    if caller is None:
        raise ApiError(401, Code.UNAUTHORIZED, NOT_SIGNED_IN)
    require_json(request)
    request.state.caller = caller
    if access is Access.ADMIN and not caller.is_admin:
        raise ApiError(403, Code.FORBIDDEN, NOT_ADMIN)
    if access is Access.OWNER:
        await _require_owner(request, context, caller)


def client_address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


def _limit_rate(request: Request, context: Context, caller: Caller | None) -> None:
    if caller is not None:
        wait = context.rates.callers.take(str(caller.user_id))
    else:
        wait = context.rates.anonymous.take(client_address(request))
    if wait is not None:
        raise too_many_requests(TOO_FAST, wait)


async def _require_owner(request: Request, context: Context, caller: Caller) -> None:
    workspace_id = WorkspaceId(request.path_params["workspace_id"])
    if not is_id(workspace_id):
        raise WorkspaceNotFound(workspace_id)
    view = await load_workspace(context, workspace_id)
    if view.owner_user_id != caller.user_id and not caller.is_admin:
        raise ApiError(403, Code.FORBIDDEN, NOT_OWNER)
    request.state.workspace = view
