"""The one gate that every route passes: identity, rate, media type, access; no body is read before."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from api.context import Context, context_of
from api.errors import ApiError, too_many_requests
from api.request_bodies import limited, require_json
from api.schemas.base import one_spelling
from api.schemas.errors import Code
from api.security.access import ACCESS, Access
from api.security.authentication import identify
from codehub.db.views import load_any_view
from codehub.domain.conditions import WorkspaceId
from codehub.services.errors import WorkspaceNotFound
from codehub.services.identity import Caller

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """A route whose handler is reached through the gate only."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        (access,) = {ACCESS[method, self.path_format] for method in self.methods or ()}

        async def guarded(request: Request) -> Response:
            await admit(request, access)
            return await handle(limited(request, context_of(request).options.max_body_bytes))

        return guarded


async def admit(request: Request, access: Access) -> None:
    """Let the request through, with its caller, or raise what is to be answered."""
    context = context_of(request)
    if access is Access.PUBLIC:
        require_json(request)
        return
    caller = await identify(request, context)
    _slow_down(request, context, caller)
    if caller is None:
        raise ApiError(401, Code.UNAUTHORIZED, "Sign in, or send a personal token that is still valid.")
    require_json(request)
    request.state.caller = caller
    if access is Access.ADMIN and not caller.is_admin:
        raise ApiError(403, Code.FORBIDDEN, "Only administrators may do this.")
    if access is Access.OWNER:
        await _require_owner(request, context, caller)


def client_address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


def _slow_down(request: Request, context: Context, caller: Caller | None) -> None:
    if caller is not None:
        wait = context.rates.callers.take(str(caller.user_id))
    else:
        wait = context.rates.strangers.take(client_address(request))
    if wait is not None:
        raise too_many_requests("You are sending requests faster than allowed; slow down.", wait)


async def _require_owner(request: Request, context: Context, caller: Caller) -> None:
    workspace_id = _workspace_id(request.path_params["workspace_id"])
    async with context.reading.transaction() as session:
        view = await load_any_view(session, workspace_id)
    if view is None:
        raise WorkspaceNotFound(workspace_id)
    if view.owner_user_id != caller.user_id and not caller.is_admin:
        raise ApiError(403, Code.FORBIDDEN, "This workspace belongs to somebody else.")
    request.state.workspace = view


def _workspace_id(text: str) -> WorkspaceId:
    try:
        return WorkspaceId(str(one_spelling(text)))
    except ValueError as error:
        raise WorkspaceNotFound(WorkspaceId(text)) from error
