"""Authenticates requests by session cookie or personal token."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from api.context import Context
from api.errors import ApiError
from api.schemas.errors import Code
from api.security.csrf import CSRF_HEADER, is_cookie_trusted, is_csrf_token
from codehub.origins import SAFE_METHODS
from codehub.services.identity import Caller, find_session, find_token

BEARER = "bearer"
CSRF_TOKEN_MISSING = (
    f"Changes made with a session cookie need the {CSRF_HEADER} header. "
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
    cookie = request.cookies.get(context.options.cookie_name)
    if cookie and not is_cookie_trusted(request.method, request.headers, context.origins):
        cookie = None
    return Credentials(bearer, cookie or None)


async def authenticate(request: Request, context: Context) -> Caller | None:
    """Return the caller, or None if the request is anonymous; changes by cookie also need a CSRF token."""
    credentials = read_credentials(request, context)
    if credentials.bearer is not None:
        return await find_token(context.reading, credentials.bearer, now=context.now())
    if credentials.cookie is None:
        return None
    caller = await find_session(context.reading, credentials.cookie, now=context.now())
    if caller is not None and request.method not in SAFE_METHODS:
        _require_csrf_token(request, credentials.cookie)
    return caller


def _require_csrf_token(request: Request, session_token: str) -> None:
    if not is_csrf_token(request.headers.get(CSRF_HEADER), session_token):
        raise ApiError(403, Code.CSRF_TOKEN_MISSING, CSRF_TOKEN_MISSING)


async def _caller(request: Request) -> Caller:
    return cast("Caller", request.state.caller)


SignedInCaller = Annotated[Caller, Depends(_caller)]
