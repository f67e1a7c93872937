"""Authenticates requests by session cookie or personal token."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from api.context import Context
from api.errors import ApiError
from api.schemas.errors import Code
from api.security.access import API
from api.security.csrf import CSRF_HEADER, is_cookie_trusted, is_csrf_token, is_own_page
from codehub.cookies import DUPLICATE, DuplicateCookie, find_cookie
from codehub.origins import SAFE_METHODS
from codehub.services.identity import Caller, find_session, find_token

BEARER = "bearer"
SESSION_PATH = f"{API}/session"
CSRF_TOKEN_MISSING = (
    f"Requests with a session cookie need the {CSRF_HEADER} header, except reads by CodeHub's own pages. "
    "GET /api/v1/session returns its value."
)


@dataclass(frozen=True)
class Credentials:
    """The credentials of a request; a token wins, because browsers never add one by themselves."""

    bearer: str | None
    cookie: str | None


def read_credentials(request: Request, context: Context) -> Credentials:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    bearer = value.strip() if scheme.lower() == BEARER and value.strip() else None
    cookie = read_cookie(request, context.options.cookie_name)
    if cookie and not is_cookie_trusted(request.method, request.headers, context.options.origins):
        cookie = None
    return Credentials(bearer, cookie or None)


def read_cookie(request: Request, name: str) -> str | None:
    """Return the cookie; refuse a request that has several of this name, as the proxy does."""
    try:
        return find_cookie("; ".join(request.headers.getlist("cookie")), name)
    except DuplicateCookie as error:
        raise ApiError(400, Code.INVALID_REQUEST, DUPLICATE) from error


async def authenticate(request: Request, context: Context) -> Caller | None:
    """Return the caller, or None if the request is anonymous; a cookie may also need a CSRF token."""
    credentials = read_credentials(request, context)
    if credentials.bearer is not None:
        return await find_token(context.reading, credentials.bearer, now=context.now())
    if credentials.cookie is None:
        return None
    caller = await find_session(context.reading, credentials.cookie, now=context.now())
    if caller is not None and _needs_csrf_token(request, context):
        _require_csrf_token(request, credentials.cookie)
    return caller


def _needs_csrf_token(request: Request, context: Context) -> bool:
    """Return whether it does: every change, and reads that our own page did not provably make."""
    if request.method not in SAFE_METHODS:
        return True
    # Our pages get the token from this response, which other origins cannot read.
    return request.url.path != SESSION_PATH and not is_own_page(request.headers, context.options.origins)


def _require_csrf_token(request: Request, session_token: str) -> None:
    if not is_csrf_token(request.headers.get(CSRF_HEADER), session_token):
        raise ApiError(403, Code.CSRF_TOKEN_MISSING, CSRF_TOKEN_MISSING)


async def _caller(request: Request) -> Caller:
    return cast("Caller", request.state.caller)


SignedInCaller = Annotated[Caller, Depends(_caller)]
