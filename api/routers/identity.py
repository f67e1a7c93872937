"""Sign-in and sign-out, and the sessions and password of the signed-in user."""

from datetime import datetime

from fastapi import APIRouter, Request, Response

from api.context import ApiContext, Context
from api.errors import ApiError, too_many_requests
from api.responses import json_response
from api.schemas.base import Id
from api.schemas.errors import Code
from api.schemas.identity import ChangePassword, Login, Person, SessionItem, SessionList, SessionView
from api.security.access import API
from api.security.authentication import SignedInCaller, read_credentials
from api.security.csrf import csrf_token_of, is_cookie_trusted
from api.security.guard import GuardedRoute, client_address
from codehub.services import credentials, identity
from codehub.services.identity import Caller, Credential

router = APIRouter(prefix=API, route_class=GuardedRoute, tags=["identity"])

MAX_USER_AGENT_LENGTH = 300


@router.post("/login", response_model=SessionView, summary="Sign in")
async def login(form: Login, request: Request, context: ApiContext) -> Response:
    """Set the session cookie. After five failures in a row, the account is locked for a while (429)."""
    if not is_cookie_trusted(request.method, request.headers, context.origins):
        raise ApiError(403, Code.FORBIDDEN, "Sign in on the sign-in page of CodeHub.")
    wait = context.rates.sign_ins.take(client_address(request))
    if wait is not None:
        raise too_many_requests(
            "Too many sign-in attempts from your address. Wait before you try again.", wait
        )
    signed_in = await identity.sign_in(
        context.database,
        context.passwords,
        form.username,
        form.password,
        lifetime=context.options.session_lifetime,
        user_agent=request.headers.get("user-agent", "")[:MAX_USER_AGENT_LENGTH] or None,
        now=context.now(),
    )
    response = json_response(_session_view(signed_in.caller, csrf_token_of(signed_in.token)))
    _set_cookie(response, context, signed_in.token, signed_in.caller.expires_at)
    return response


@router.post("/logout", status_code=204, response_class=Response, summary="Sign out")
async def logout(caller: SignedInCaller, context: ApiContext) -> Response:
    """End the session and its event streams. With a token, nothing is revoked."""
    if caller.credential is Credential.SESSION:
        await identity.sign_out(context.database, caller.credential_id, now=context.now())
        context.hub.end_credential(str(caller.credential_id))
    response = Response(status_code=204)
    response.delete_cookie(
        context.options.cookie_name, path="/", secure=context.options.is_https, httponly=True
    )
    return response


@router.get("/session", response_model=SessionView, summary="Read the current session")
async def read_session(request: Request, caller: SignedInCaller, context: ApiContext) -> Response:
    """Return the signed-in user, and the CSRF token that a page needs."""
    cookie = read_credentials(request, context).cookie
    is_session = caller.credential is Credential.SESSION and cookie is not None
    return json_response(_session_view(caller, csrf_token_of(cookie) if is_session and cookie else None))


@router.post("/password", status_code=204, response_class=Response, summary="Change my password")
async def change_password(form: ChangePassword, caller: SignedInCaller, context: ApiContext) -> Response:
    """End all other sessions of the user."""
    others = await credentials.list_sessions(context.database, caller.user_id, now=context.now())
    await identity.change_password(
        context.database,
        context.passwords,
        caller,
        form.current_password,
        form.new_password,
        now=context.now(),
    )
    for session in others:
        if session.id != caller.credential_id:
            context.hub.end_credential(str(session.id))
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


@router.delete(
    "/sessions/{session_id}", status_code=204, response_class=Response, summary="End one of my sessions"
)
async def revoke_session(session_id: Id, caller: SignedInCaller, context: ApiContext) -> Response:
    """The session ends at once, with its event streams."""
    await credentials.revoke_session(context.database, caller.user_id, session_id, now=context.now())
    context.hub.end_credential(str(session_id))
    return Response(status_code=204)


def _session_view(caller: Caller, csrf_token: str | None) -> SessionView:
    return SessionView(
        user=Person(id=caller.user_id, username=caller.username, role=caller.role),
        credential=caller.credential,
        expires_at=caller.expires_at,
        csrf_token=csrf_token,
    )


def _set_cookie(response: Response, context: Context, token: str, expires_at: datetime | None) -> None:
    response.set_cookie(
        context.options.cookie_name,
        token,
        expires=expires_at,
        path="/",
        secure=context.options.is_https,
        httponly=True,
        samesite="lax",
    )
