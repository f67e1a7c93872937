"""Personal tokens for programs."""

from datetime import datetime, timedelta

from fastapi import APIRouter, Response

from api.context import Provided
from api.errors import ApiError
from api.responses import json_response
from api.schemas.base import Id
from api.schemas.errors import Code
from api.schemas.identity import CreatedToken, CreateToken, TokenItem, TokenList
from api.security.access import API
from api.security.authentication import SignedInCaller
from api.security.guard import GuardedRoute
from codehub.db.credentials import TokenView
from codehub.services import credentials
from codehub.services.identity import Caller, Credential

router = APIRouter(prefix=f"{API}/tokens", route_class=GuardedRoute, tags=["tokens"])


@router.get("", response_model=TokenList, summary="My tokens")
async def list_tokens(caller: SignedInCaller, context: Provided) -> Response:
    """Those that were not revoked."""
    found = await credentials.list_tokens(context.database, caller.user_id)
    return json_response(TokenList(items=[TokenItem(**_fields(each)) for each in found]))


@router.post("", status_code=201, response_model=CreatedToken, summary="Make a token")
async def create_token(form: CreateToken, caller: SignedInCaller, context: Provided) -> Response:
    """The answer shows the token, this once. Send it as `Authorization: Bearer ...`."""
    now = context.now()
    expires_at = now + timedelta(days=form.expires_in_days) if form.expires_in_days else None
    _refuse_to_outlive(caller, expires_at)
    created = await credentials.create_token(
        context.database, caller.user_id, form.name, expires_at=expires_at, now=now
    )
    return json_response(CreatedToken(**_fields(created.view), token=created.token), 201)


@router.delete("/{token_id}", status_code=204, response_class=Response, summary="Revoke a token")
async def revoke_token(token_id: Id, caller: SignedInCaller, context: Provided) -> Response:
    """It stops working at once, streams included."""
    await credentials.revoke_token(context.database, caller.user_id, token_id, now=context.now())
    context.hub.end_credential(str(token_id))
    return Response(status_code=204)


def _refuse_to_outlive(caller: Caller, expires_at: datetime | None) -> None:
    """Who found a token that ends soon must not make one of it that never ends."""
    if caller.credential is not Credential.TOKEN or caller.expires_at is None:
        return
    if expires_at is None or expires_at > caller.expires_at:
        message = "A token cannot make one that outlives it; sign in to do so."
        raise ApiError(403, Code.FORBIDDEN, message)


def _fields(view: TokenView) -> dict[str, object]:
    return {
        "id": view.id,
        "name": view.name,
        "created_at": view.created_at,
        "expires_at": view.expires_at,
        "last_used_at": view.last_used_at,
    }
