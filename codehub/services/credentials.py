"""A user's sessions and API tokens: 256 random bits each, stored only as a hash."""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import Account, Role, lock_account
from codehub.db.credentials import (
    SessionView,
    TokenView,
    count_live_tokens,
    insert_token,
    list_live_sessions,
    list_unrevoked_tokens,
    revoke_sessions,
    revoke_tokens,
)
from codehub.db.session import Database
from codehub.db.views import load_view
from codehub.domain.conditions import WorkspaceId
from codehub.domain.scopes import Scope, with_implied
from codehub.services.audit import Action, Actor, record
from codehub.services.errors import (
    CredentialNotFound,
    InvalidExpiry,
    InvalidScope,
    InvalidTokenName,
    TooManyTokens,
    UserNotFound,
    WorkspaceNotFound,
)

SECRET_BYTES = 32
# People and secret scanners recognize it.
API_TOKEN_PREFIX = "codehub_pat_"  # noqa: S105


MAX_TOKENS = 50
MAX_NAME_LENGTH = 100


@dataclass(frozen=True)
class CreatedToken:
    """A new token, with the secret that is shown only once."""

    view: TokenView
    token: str = field(repr=False)


def new_session_token() -> str:
    return secrets.token_urlsafe(SECRET_BYTES)


def new_api_token() -> str:
    return API_TOKEN_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def hash_token(token: str) -> bytes:
    """Hash without a salt, so that an index finds it; 256 random bits need none."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


async def list_sessions(database: Database, user_id: UUID, *, now: datetime) -> list[SessionView]:
    """Return the live sessions, newest first."""
    async with database.transaction() as session:
        return await list_live_sessions(session, user_id, now)


async def revoke_session(
    database: Database, user_id: UUID, session_id: UUID, *, by: Actor, now: datetime
) -> None:
    """End the session; raise CredentialNotFound if the user has no such session."""
    async with database.transaction() as session:
        if not await revoke_sessions(session, now, user_id=user_id, session_id=session_id):
            raise CredentialNotFound
        await record(session, Action.SESSION_REVOKE, now, by=by, target_id=session_id)


async def sign_out_everywhere(
    database: Database, user_id: UUID, *, tokens: bool, by: Actor, now: datetime
) -> None:
    """End all sessions of the user and, if requested, revoke all tokens."""
    async with database.transaction() as session:
        ended = await revoke_sessions(session, now, user_id=user_id)
        revoked = await revoke_tokens(session, now, user_id=user_id) if tokens else 0
        detail = {"sessions": ended, "tokens": revoked}
        await record(session, Action.SIGN_OUT_EVERYWHERE, now, by=by, detail=detail)


@dataclass(frozen=True)
class TokenLimits:
    """The scopes of a new token, and its workspaces; None means all of its owner's."""

    scopes: frozenset[Scope] = frozenset({Scope.WORKSPACES})
    workspace_ids: frozenset[UUID] | None = None


async def create_token(
    database: Database,
    user_id: UUID,
    name: str,
    *,
    expires_at: datetime | None,
    limits: TokenLimits = TokenLimits(),  # noqa: B008 (frozen)
    by: Actor,
    now: datetime,
) -> CreatedToken:
    scopes = sorted(with_implied(limits.scopes))
    only = None if limits.workspace_ids is None else sorted(limits.workspace_ids)
    view = TokenView(uuid4(), _validate_name(name), now, expires_at, None, None, list(scopes), only)
    if expires_at is not None and expires_at <= now:
        raise InvalidExpiry
    token = new_api_token()
    async with database.transaction() as session:
        # Locked, so that the count stays true, and disabling the user also revokes this token.
        account = await lock_account(session, user_id)
        if account is None or account.disabled_at is not None:
            raise UserNotFound
        if await count_live_tokens(session, user_id, now) >= MAX_TOKENS:
            raise TooManyTokens(MAX_TOKENS)
        await _check_limits(session, account, limits)
        await insert_token(session, user_id, view, hash_token(token))
        detail = {
            "expires_at": None if expires_at is None else expires_at.isoformat(),
            "scopes": scopes,
            "workspaces": None if only is None else [str(each) for each in only],
        }
        await record(
            session, Action.TOKEN_CREATE, now, by=by, target=view.name, target_id=view.id, detail=detail
        )
    return CreatedToken(view, token)


async def list_tokens(database: Database, user_id: UUID) -> list[TokenView]:
    """Return the tokens that were not revoked, newest first, also expired ones."""
    async with database.transaction() as session:
        return await list_unrevoked_tokens(session, user_id)


async def revoke_token(
    database: Database, user_id: UUID, token_id: UUID, *, by: Actor, now: datetime
) -> None:
    """Revoke the token; raise CredentialNotFound if the user has no such token."""
    async with database.transaction() as session:
        if not await revoke_tokens(session, now, user_id=user_id, token_id=token_id):
            raise CredentialNotFound
        await record(session, Action.TOKEN_REVOKE, now, by=by, target_id=token_id)


async def _check_limits(session: AsyncSession, account: Account, limits: TokenLimits) -> None:
    if Scope.ADMIN in limits.scopes and account.role != Role.ADMIN:
        raise InvalidScope("Only administrators can create a token with the scope `admin`.")
    if limits.workspace_ids is None:
        return
    if Scope.ADMIN in limits.scopes:
        raise InvalidScope(
            "A token that is limited to workspaces cannot have the scope `admin`; remove one of the two."
        )
    for each in limits.workspace_ids:
        workspace_id = WorkspaceId(str(each))
        view = await load_view(session, workspace_id)
        if view is None or view.owner_user_id != account.user_id:
            raise WorkspaceNotFound(workspace_id)


def _validate_name(name: str) -> str:
    stripped = name.strip()
    if not 1 <= len(stripped) <= MAX_NAME_LENGTH or not stripped.isprintable():
        raise InvalidTokenName(MAX_NAME_LENGTH)
    return stripped
