"""A user's sessions and API tokens: 256 random bits each, stored only as a hash."""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid4

from codehub.db.accounts import lock_account
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
from codehub.services.errors import (
    CredentialNotFound,
    InvalidExpiry,
    InvalidTokenName,
    TooManyTokens,
    UserNotFound,
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


async def revoke_session(database: Database, user_id: UUID, session_id: UUID, *, now: datetime) -> None:
    """End the session; raise CredentialNotFound if the user has no such session."""
    async with database.transaction() as session:
        if not await revoke_sessions(session, now, user_id=user_id, session_id=session_id):
            raise CredentialNotFound


async def create_token(
    database: Database, user_id: UUID, name: str, *, expires_at: datetime | None, now: datetime
) -> CreatedToken:
    view = TokenView(uuid4(), _validate_name(name), now, expires_at, last_used_at=None, revoked_at=None)
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
        await insert_token(session, user_id, view, hash_token(token))
    return CreatedToken(view, token)


async def list_tokens(database: Database, user_id: UUID) -> list[TokenView]:
    """Return the tokens that were not revoked, newest first, also expired ones."""
    async with database.transaction() as session:
        return await list_unrevoked_tokens(session, user_id)


async def revoke_token(database: Database, user_id: UUID, token_id: UUID, *, now: datetime) -> None:
    """Revoke the token; raise CredentialNotFound if the user has no such token."""
    async with database.transaction() as session:
        if not await revoke_tokens(session, now, user_id=user_id, token_id=token_id):
            raise CredentialNotFound


def _validate_name(name: str) -> str:
    stripped = name.strip()
    if not 1 <= len(stripped) <= MAX_NAME_LENGTH or not stripped.isprintable():
        raise InvalidTokenName(MAX_NAME_LENGTH)
    return stripped
