"""The guard in front of every route: authentication, rate limit, media type, access; in this order."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, cast

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from api.context import Context, context_of
from api.errors import ApiError, too_many_requests
from api.queries import load_workspace
from api.request_bodies import limit_body, require_json
from api.schemas.base import is_id
from api.schemas.errors import Code
from api.security.access import (
    ACCESS,
    ANONYMOUS,
    LIMITED_TOKEN,
    NEEDS_PASSWORD,
    NEEDS_SESSION,
    OF_WORKSPACE,
    Access,
    scope_of,
)
from api.security.authentication import authenticate
from codehub.addresses import address_group
from codehub.domain.conditions import WorkspaceId
from codehub.origins import SAFE_METHODS
from codehub.services.audit import Actor
from codehub.services.errors import WorkspaceNotFound
from codehub.services.identity import Caller, Credential
from codehub.services.totp import is_protected

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

NOT_SIGNED_IN = "Sign in, or send a valid personal token."
NOT_ADMIN = "Only administrators may do this."
NO_SECOND_FACTOR = "Administrators need a second factor here. Add an authenticator app on your account page."
NOT_OWNER = "This workspace belongs to another user."
NO_TOKEN = "A token cannot do this. Sign in with your password."  # noqa: S105
NO_SCOPE = "This token lacks the scope `{}`. Create a token that has it."
OTHER_WORKSPACE = "This token is only for some workspaces, and cannot do this."
PASSWORD_AGAIN = "Enter your password again, or sign in again, to do this."  # noqa: S105
TOO_FAST = "You are sending requests too fast. Wait before you send more."


class GuardedRoute(APIRoute):
    """A route whose handler runs only if the guard admits the request; the body is not read before."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        (method,) = self.methods or {"GET"}
        route = (method, self.path_format)

        async def guarded(request: Request) -> Response:
            await admit(request, route)
            return await handle(limit_body(request, context_of(request).options.max_body_bytes))

        return guarded


async def admit(request: Request, route: tuple[str, str]) -> None:
    """Store the caller and the workspace in the request's state, or raise an ApiError."""
    context, access = context_of(request), ACCESS[route]
    if access is Access.OPERATOR and "via" in request.headers:
        # The proxy refuses these paths too, but only the API knows which route a path matches.
        raise HTTPException(404)
    if access in ANONYMOUS:
        require_json(request)
        return
    caller = await authenticate(request, context)
    _limit_rate(request, context, caller)
    if caller is None:
        raise ApiError(401, Code.UNAUTHORIZED, NOT_SIGNED_IN)
    require_json(request)
    request.state.caller = caller
    if access is Access.ADMIN:
        await _require_admin(context, caller)
    if caller.credential is Credential.TOKEN:
        _require_scope(caller, route)
    elif route in NEEDS_PASSWORD:
        _require_password(context, caller)
    if access in OF_WORKSPACE:
        await _require_owner(request, context, caller, alone=access is Access.OWNER_ALONE)


def _require_scope(caller: Caller, route: tuple[str, str]) -> None:
    """Refuse a token that lacks the scope of the route."""
    if route in NEEDS_SESSION:
        raise ApiError(403, Code.REAUTHENTICATION_REQUIRED, NO_TOKEN)
    scope = scope_of(route)
    if scope is not None and scope not in caller.scopes:
        raise ApiError(403, Code.FORBIDDEN, NO_SCOPE.format(scope))
    if caller.workspace_ids is not None and ACCESS[route] not in OF_WORKSPACE and route not in LIMITED_TOKEN:
        raise ApiError(403, Code.FORBIDDEN, OTHER_WORKSPACE)


def _require_password(context: Context, caller: Caller) -> None:
    """Refuse a session whose user has not entered the password recently."""
    if caller.confirmed_at is None or context.now() - caller.confirmed_at > context.options.confirm_window:
        raise ApiError(403, Code.REAUTHENTICATION_REQUIRED, PASSWORD_AGAIN)


def client_address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


def client_group(request: Request) -> str:
    """Return the key of rate limits: the address, or the network of an IPv6 address."""
    return address_group(client_address(request))


async def _actor(request: Request) -> Actor:
    caller = cast("Caller", request.state.caller)
    return Actor(caller.username, caller.user_id, client_address(request))


# The signed-in caller, as the audit log names it.
ApiActor = Annotated[Actor, Depends(_actor)]


def _limit_rate(request: Request, context: Context, caller: Caller | None) -> None:
    if caller is not None:
        wait = context.rates.callers.take(str(caller.user_id))
    else:
        wait = context.rates.anonymous.take(client_group(request))
    if wait is not None:
        raise too_many_requests(TOO_FAST, wait)


async def _require_admin(context: Context, caller: Caller) -> None:
    if not caller.belongs_to_admin:
        raise ApiError(403, Code.FORBIDDEN, NOT_ADMIN)
    await _require_second_factor(context, caller)


async def _require_second_factor(context: Context, caller: Caller) -> None:
    """Refuse an administrator without a second factor if the settings want one."""
    needed = context.options.admins_need_second_factor
    if needed and not await is_protected(context.reading, caller.user_id):
        raise ApiError(403, Code.FORBIDDEN, NO_SECOND_FACTOR)


async def _require_owner(request: Request, context: Context, caller: Caller, *, alone: bool) -> None:
    workspace_id = WorkspaceId(request.path_params["workspace_id"])
    if not is_id(workspace_id):
        raise WorkspaceNotFound(workspace_id)
    view = await load_workspace(context, workspace_id)
    if view.owner_user_id != caller.user_id:
        if alone or not caller.is_admin:
            raise ApiError(403, Code.FORBIDDEN, NOT_OWNER)
        # Whoever acts on the workspaces of others administers.
        await _require_second_factor(context, caller)
        if caller.credential is Credential.SESSION and request.method not in SAFE_METHODS:
            _require_password(context, caller)
    if not caller.may_use(view.workspace_id):
        raise ApiError(403, Code.FORBIDDEN, OTHER_WORKSPACE)
    request.state.workspace = view
