"""Personal tokens for programs."""

from datetime import timedelta

from fastapi import APIRouter, Response

from api.context import ApiContext
from api.responses import json_response
from api.schemas.base import Id
from api.schemas.identity import CreatedToken, CreateToken, TokenItem, TokenList
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import ApiActor, GuardedRoute
from codehub.services import credentials
from codehub.services.credentials import TokenLimits

router = APIRouter(prefix=f"{API}/tokens", route_class=GuardedRoute, tags=["tokens"])


@router.get("", response_model=TokenList, summary="List my tokens")
async def list_tokens(caller: SignedInCaller, context: ApiContext) -> Response:
    """Return the tokens that are not revoked."""
    found = await credentials.list_tokens(context.database, caller.user_id)
    return json_response(
        TokenList(items=[TokenItem.model_validate(each, from_attributes=True) for each in found])
    )


@router.post("", status_code=201, response_model=CreatedToken, summary="Create a token")
async def create_token(
    form: CreateToken, caller: SignedInCaller, by: ApiActor, context: ApiContext
) -> Response:
    """Only this response shows the token. Send it as `Authorization: Bearer ...`.

    A token cannot make tokens, and a session only shortly after its user has entered the password: otherwise
    the code is `REAUTHENTICATION_REQUIRED`; send the password to `POST /api/v1/session/confirm` and repeat.
    """
    now = context.now()
    expires_at = now + timedelta(days=form.expires_in_days) if form.expires_in_days else None
    only = None if form.workspaces is None else frozenset(form.workspaces)
    limits = TokenLimits(frozenset(form.scopes), only)
    created = await credentials.create_token(
        context.database, caller.user_id, form.name, expires_at=expires_at, limits=limits, by=by, now=now
    )
    item = TokenItem.model_validate(created.view, from_attributes=True)
    return json_response(CreatedToken(**dict(item), token=created.token), 201)


@router.delete("/{token_id}", status_code=204, response_class=Response, summary="Revoke a token")
async def revoke_token(token_id: Id, caller: SignedInCaller, by: ApiActor, context: ApiContext) -> Response:
    """The token stops working at once, and its event streams end."""
    await credentials.revoke_token(context.database, caller.user_id, token_id, by=by, now=context.now())
    context.hub.end_credential(str(token_id))
    return Response(status_code=204)
