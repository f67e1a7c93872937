"""The authenticator app of the signed-in user, and its removal by administrators."""

from fastapi import APIRouter, Response

from api.context import ApiContext
from api.responses import json_response
from api.schemas.base import Id
from api.schemas.totp import (
    AuthenticatorSecret,
    AuthenticatorView,
    EnableAuthenticator,
    RecoveryCodes,
)
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import ApiActor, GuardedRoute
from codehub.services import totp

router = APIRouter(prefix=API, route_class=GuardedRoute)


@router.get(
    "/authenticator", response_model=AuthenticatorView, summary="Read my second factor", tags=["identity"]
)
async def read_authenticator(caller: SignedInCaller, context: ApiContext) -> Response:
    """Return whether sign-ins ask for a code, and how many recovery codes are left."""
    status = await totp.read_status(context.database, caller.user_id)
    required = caller.is_admin and context.options.admins_need_second_factor
    return json_response(
        AuthenticatorView(
            available=status.available,
            enabled_at=status.enabled_at,
            recovery_codes_left=status.recovery_codes_left,
            required=required,
        )
    )


@router.post(
    "/authenticator",
    status_code=201,
    response_model=AuthenticatorSecret,
    summary="Add an authenticator app",
    tags=["identity"],
)
async def add_authenticator(caller: SignedInCaller, context: ApiContext) -> Response:
    """Return a secret for the app. Sign-ins ask for codes once the app is enabled."""
    enrollment = await totp.enroll(context.database, caller.user_id, now=context.now())
    return json_response(AuthenticatorSecret.model_validate(enrollment), 201)


@router.post(
    "/authenticator/enable",
    response_model=RecoveryCodes,
    summary="Enable the new authenticator app",
    tags=["identity"],
)
async def enable_authenticator(
    form: EnableAuthenticator, caller: SignedInCaller, by: ApiActor, context: ApiContext
) -> Response:
    """Return the recovery codes. Only this response shows them."""
    codes = await totp.enable(context.database, caller.user_id, form.code, by=by, now=context.now())
    return json_response(RecoveryCodes(codes=codes))


@router.delete(
    "/authenticator",
    status_code=204,
    response_class=Response,
    summary="Remove my authenticator app",
    tags=["identity"],
)
async def remove_authenticator(caller: SignedInCaller, by: ApiActor, context: ApiContext) -> Response:
    """Afterwards the password alone is enough to sign in."""
    await totp.disable(context.database, caller.user_id, by=by, now=context.now())
    return Response(status_code=204)


@router.delete(
    "/admin/users/{user_id}/authenticator",
    status_code=204,
    response_class=Response,
    summary="Remove the authenticator app of a user",
    tags=["administration"],
)
async def reset_authenticator(user_id: Id, context: ApiContext, by: ApiActor) -> Response:
    """For a user who has lost the app and the recovery codes."""
    await totp.reset(context.database, user_id, by=by, now=context.now())
    return Response(status_code=204)
