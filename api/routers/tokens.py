"""Personal tokens for programs."""

from datetime import datetime, timedelta

from fastapi import APIRouter, Response

from api.context import ApiContext
from api.errors import ApiError
from api.responses import json_response
from api.schemas.base import Id
from api.schemas.errors import Code
from api.schemas.identity import CreatedToken, CreateToken, TokenItem, TokenList
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import GuardedRoute
from codehub.services import credentials
from codehub.services.identity import Caller, Credential

router = APIRouter(prefix=f"{API}/tokens", route_class=GuardedRoute, tags=["tokens"])


@router.get("", response_model=TokenList, summary="List my tokens")
async def list_tokens(caller: SignedInCaller, context: ApiContext) -> Response:
    """Return the tokens that are not revoked."""
    found = await credentials.list_tokens(context.database, caller.user_id)
    return json_response(
        TokenList(items=[TokenItem.model_validate(each, from_attributes=True) for each in found])
    )


@router.post("", status_code=201, response_model=CreatedToken, summary="Create a token")
async def create_token(form: CreateToken, caller: SignedInCaller, context: ApiContext) -> Response:
    """Only this response shows the token. Send it as `Authorization: Bearer ...`."""
    now = context.now()
    expires_at = now + timedelta(days=form.expires_in_days) if form.expires_in_days else None
    _check_expiry(caller, expires_at)
    created = await credentials.create_token(
        context.database, caller.user_id, form.name, expires_at=expires_at, now=now
    )
    item = TokenItem.model_validate(created.view, from_attributes=True)
    return json_response(CreatedToken(**dict(item), token=created.token), 201)


@router.delete("/{token_id}", status_code=204, response_class=Response, summary="Revoke a token")
async def revoke_token(token_id: Id, caller: SignedInCaller, context: ApiContext) -> Response:
    """The token stops working at once, and its event streams end."""
    await credentials.revoke_token(context.database, caller.user_id, token_id, now=context.now())
    context.hub.end_credential(str(token_id))
    return Response(status_code=204)


def _check_expiry(caller: Caller, expires_at: datetime | None) -> None:
    """Refuse to turn a token that expires soon into one that expires later or never."""
    if caller.credential is not Credential.TOKEN or caller.expires_at is None:
        return
    if expires_at is None or expires_at > caller.expires_at:
        message = "A token cannot create a token that expires later than itself. Sign in to create it."
        raise ApiError(403, Code.FORBIDDEN, message)
