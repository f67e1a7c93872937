"""Sign-in and sign-out, and the sessions and password of the signed-in user."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.context import ApiContext, Context
from api.errors import ApiError, too_many_requests
from api.responses import json_response
from api.schemas.base import Id
from api.schemas.errors import Code
from api.schemas.identity import (
    ChangePassword,
    ConfirmPassword,
    Login,
    Person,
    SessionItem,
    SessionList,
    SessionView,
)
from api.security.access import API
from api.security.authentication import SignedInCaller, read_cookie, read_credentials
from api.security.csrf import csrf_token_of, is_cookie_trusted
from api.security.guard import ApiActor, GuardedRoute, client_address, client_group
from codehub.services import credentials, identity, totp
from codehub.services.identity import Caller, Credential, SignInClient
from codehub.services.lockout import DEVICE_KNOWN

router = APIRouter(prefix=API, route_class=GuardedRoute, tags=["identity"])

MAX_USER_AGENT_LENGTH = 300


@router.post("/login", response_model=SessionView, summary="Sign in")
async def login(form: Login, request: Request, context: ApiContext) -> Response:
    """Set the session cookie. After five wrong passwords, attempts from there get 429 for a while."""
    if not is_cookie_trusted(request.method, request.headers, context.options.origins):
        raise ApiError(403, Code.FORBIDDEN, "Sign in on the sign-in page of CodeHub.")
    wait = context.rates.sign_ins.take(client_group(request))
    if wait is not None:
        raise too_many_requests(
            "Too many sign-in attempts from your address. Wait before you try again.", wait
        )
    signed_in = await identity.sign_in(
        context.database,
        context.passwords,
        form.username,
        form.password,
        second_factor=totp.second_factor(form.code, context.now()),
        admins_only=context.options.admin_passwords_only,
        times=context.options.session_times,
        client=replace(
            sign_in_client(request), device=read_cookie(request, context.options.origins.device_cookie)
        ),
        now=context.now(),
    )
    response = json_response(_session_view(signed_in.caller, csrf_token_of(signed_in.token), context))
    set_session_cookie(response, context, signed_in.token, signed_in.caller.expires_at)
    _set_device_cookie(response, context, signed_in.device)
    return response


@router.post("/logout", status_code=204, response_class=Response, summary="Sign out")
async def logout(caller: SignedInCaller, by: ApiActor, context: ApiContext) -> Response:
    """End the session and its event streams. With a token, nothing is revoked."""
    if caller.credential is Credential.SESSION:
        await identity.sign_out(context.database, caller.credential_id, by=by, now=context.now())
        context.hub.end_credential(str(caller.credential_id))
    return _signed_out(context)


@router.get("/session", response_model=SessionView, summary="Read the current session")
async def read_session(request: Request, caller: SignedInCaller, context: ApiContext) -> Response:
    """Return the signed-in user, and the CSRF token that a page needs."""
    cookie = read_credentials(request, context).cookie
    is_session = caller.credential is Credential.SESSION and cookie is not None
    csrf_token = csrf_token_of(cookie) if is_session and cookie else None
    return json_response(_session_view(caller, csrf_token, context))


@router.post("/session/confirm", status_code=204, response_class=Response, summary="Enter the password again")
async def confirm_password(
    form: ConfirmPassword, caller: SignedInCaller, by: ApiActor, context: ApiContext
) -> Response:
    """Allow this session to create tokens and change accounts for the next few minutes."""
    await identity.confirm_password(
        context.database, context.passwords, caller, form.password, by=by, now=context.now()
    )
    return Response(status_code=204)


@router.post("/password", status_code=204, response_class=Response, summary="Change my password")
async def change_password(
    form: ChangePassword, caller: SignedInCaller, by: ApiActor, context: ApiContext
) -> Response:
    """End all other sessions of the user and revoke all tokens."""
    await identity.change_password(
        context.database,
        context.passwords,
        caller,
        form.current_password,
        form.new_password,
        by=by,
        now=context.now(),
    )
    # The event streams of this session end too; its pages reconnect.
    context.hub.end_user(caller.user_id)
    return Response(status_code=204)


@router.get("/sessions", response_model=SessionList, summary="List my sessions")
async def list_sessions(caller: SignedInCaller, context: ApiContext) -> Response:
    """Return the sessions that are still valid."""
    found = await credentials.list_sessions(context.database, caller.user_id, now=context.now())
    items = [
        SessionItem(
            id=each.id,
            created_at=each.created_at,
            expires_at=each.expires_at,
            last_seen_at=each.last_seen_at,
            user_agent=each.user_agent,
            current=each.id == caller.credential_id,
        )
        for each in found
    ]
    return json_response(SessionList(items=items))


@router.delete("/sessions", status_code=204, response_class=Response, summary="Sign out everywhere")
async def sign_out_everywhere(
    caller: SignedInCaller,
    by: ApiActor,
    context: ApiContext,
    *,
    tokens: Annotated[bool, Query(description="Also revoke all tokens.")] = False,
) -> Response:
    """End all sessions of the user, this one included."""
    await credentials.sign_out_everywhere(
        context.database, caller.user_id, tokens=tokens, by=by, now=context.now()
    )
    context.hub.end_user(caller.user_id)
    return _signed_out(context)


@router.delete(
    "/sessions/{session_id}", status_code=204, response_class=Response, summary="End one of my sessions"
)
async def revoke_session(
    session_id: Id, caller: SignedInCaller, by: ApiActor, context: ApiContext
) -> Response:
    """The session ends at once, with its event streams."""
    await credentials.revoke_session(context.database, caller.user_id, session_id, by=by, now=context.now())
    context.hub.end_credential(str(session_id))
    return Response(status_code=204)


def sign_in_client(request: Request) -> SignInClient:
    user_agent = request.headers.get("user-agent", "")[:MAX_USER_AGENT_LENGTH]
    return SignInClient(client_address(request), user_agent or None)


def _session_view(caller: Caller, csrf_token: str | None, context: Context) -> SessionView:
    return SessionView(
        id=caller.credential_id,
        user=Person(id=caller.user_id, username=caller.username, role=caller.role),
        credential=caller.credential,
        expires_at=caller.expires_at,
        csrf_token=csrf_token,
        unsafe_workspaces=context.options.unsafe_workspaces,
    )


def _signed_out(context: Context) -> Response:
    response = Response(status_code=204)
    response.delete_cookie(
        context.options.cookie_name, path="/", secure=context.options.is_https, httponly=True
    )
    return response


def _set_device_cookie(response: Response, context: Context, device: str | None) -> None:
    """Set the cookie that protects this browser from lockouts caused by others; it does not sign in."""
    if device is None:
        return
    response.set_cookie(
        context.options.origins.device_cookie,
        device,
        max_age=int(DEVICE_KNOWN.total_seconds()),
        path="/",
        secure=context.options.is_https,
        httponly=True,
        samesite="strict",
    )


def set_session_cookie(response: Response, context: Context, token: str, expires_at: datetime | None) -> None:
    response.set_cookie(
        context.options.cookie_name,
        token,
        expires=expires_at,
        path="/",
        secure=context.options.is_https,
        httponly=True,
        samesite="lax",
    )
