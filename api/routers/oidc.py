"""Sign-in through an identity provider. The provider sends the browser back to the callback."""

import logging
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import RedirectResponse

from api.context import ApiContext, Context
from api.errors import ApiError, too_many_requests
from api.responses import json_response
from api.routers.identity import set_session_cookie, sign_in_client
from api.schemas.errors import Code
from api.schemas.oidc import BeginSignIn, SignInBegun, SignInOptions
from api.security.access import API
from api.security.authentication import read_cookie
from api.security.csrf import is_cookie_trusted
from api.security.guard import GuardedRoute, client_group
from codehub import words
from codehub.domain.single_sign_on import SignInProblem
from codehub.ports import ProviderUnavailable
from codehub.services import oidc
from codehub.services.oidc import ProviderResponse, SingleSignOn, SingleSignOnFailed

log = logging.getLogger(__name__)

router = APIRouter(prefix=API, route_class=GuardedRoute, tags=["identity"])

RETRY_SECONDS = 30
NO_PROVIDER = "This CodeHub has no identity provider. Sign in with a password."
WRONG_PAGE = "Sign in on the sign-in page of CodeHub."
TOO_MANY = "Too many sign-in attempts from your address. Wait before you try again."


def _parameter(name: str, description: str) -> Any:  # noqa: ANN401
    """Describe a parameter of the callback; RFC 6749 allows only printable ASCII."""
    return Query(alias=name, max_length=4096, pattern=r"^[\x20-\x7e]*$", description=description)


State = Annotated[str, _parameter("state", "Identifies the sign-in.")]
AuthorizationCode = Annotated[str, _parameter("code", "The authorization code.")]
ProviderError = Annotated[str, _parameter("error", "Error code, if the provider refused.")]
Issuer = Annotated[str, _parameter("iss", "The provider.")]


@router.get("/sign-in", response_model=SignInOptions, summary="List ways to sign in")
async def read_sign_in_options(context: ApiContext) -> Response:
    """Return the sign-in methods that this CodeHub offers."""
    provider = context.single_sign_on.name if context.single_sign_on else None
    passwords = "administrators" if context.options.admin_passwords_only else "everyone"
    return json_response(SignInOptions(provider=provider, passwords=passwords))


@router.post("/oidc/sign-in", response_model=SignInBegun, summary="Begin to sign in through the provider")
async def begin_sign_in(form: BeginSignIn, request: Request, context: ApiContext) -> Response:
    """Return the URL of the provider's page, and set a cookie that ties the sign-in to this browser."""
    single_sign_on = _require_provider(context)
    if not is_cookie_trusted(request.method, request.headers, context.options.origins):
        raise ApiError(403, Code.FORBIDDEN, WRONG_PAGE)
    wait = context.rates.sign_ins.take(client_group(request))
    if wait is not None:
        raise too_many_requests(TOO_MANY, wait)
    try:
        begun = await oidc.begin(
            context.database, single_sign_on.provider, form.next, fresh=form.fresh, now=context.now()
        )
    except ProviderUnavailable as error:
        log.warning("the identity provider is unavailable: %s", error)
        message = words.SIGN_IN_PROBLEMS[SignInProblem.UNAVAILABLE].format(provider=single_sign_on.name)
        raise ApiError(503, Code.DEPENDENCY_UNAVAILABLE, message, retry_after=RETRY_SECONDS) from error
    response = json_response(SignInBegun(url=begun.url))
    response.set_cookie(
        context.options.origins.sign_in_cookie,
        begun.browser,
        max_age=int(oidc.ATTEMPT_LIFETIME.total_seconds()),
        path="/",
        secure=context.options.is_https,
        httponly=True,
        # Strict would drop it on the provider's redirect.
        samesite="lax",
    )
    return response


async def _provider_response(
    state: State = "", code: AuthorizationCode = "", error: ProviderError = "", issuer: Issuer = ""
) -> ProviderResponse:
    return ProviderResponse(state, code, error, issuer)


@router.get(
    "/oidc/callback",
    status_code=303,
    response_class=RedirectResponse,
    summary="Complete a sign-in through the provider",
)
async def complete_sign_in(
    request: Request,
    provider_response: Annotated[ProviderResponse, Depends(_provider_response)],
    context: ApiContext,
) -> Response:
    """Redirect to the sign-in page, which continues to the next page or explains the problem."""
    single_sign_on = _require_provider(context)
    wait = context.rates.anonymous.take(client_group(request))
    if wait is not None:
        raise too_many_requests(TOO_MANY, wait)
    try:
        completed = await oidc.complete(
            context.database,
            single_sign_on,
            provider_response,
            read_cookie(request, context.options.origins.sign_in_cookie) or "",
            times=context.options.session_times,
            client=sign_in_client(request),
            now=context.now(),
        )
    except SingleSignOnFailed as failed:
        return _to_sign_in_page(context, next=failed.next_path, problem=failed.problem)
    response = _to_sign_in_page(context, next=completed.next_path, signed_in="yes")
    signed_in = completed.signed_in
    set_session_cookie(response, context, signed_in.token, signed_in.caller.expires_at)
    return response


def _require_provider(context: Context) -> SingleSignOn:
    if context.single_sign_on is None:
        raise ApiError(404, Code.NOT_FOUND, NO_PROVIDER)
    return context.single_sign_on


def _to_sign_in_page(context: Context, **parameters: str) -> Response:
    """Redirect within CodeHub only: the sign-in page checks the next path."""
    url = f"{context.options.origins.public_url}/login?{urlencode(parameters)}"
    response = RedirectResponse(url, 303)
    name = context.options.origins.sign_in_cookie
    response.delete_cookie(name, path="/", secure=context.options.is_https, httponly=True)
    return response
