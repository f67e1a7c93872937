"""What sessions and API tokens are made of: 256 bits that cannot be guessed, kept only as a hash."""

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
# Scanners for leaked secrets recognise it, and so do people.
API_TOKEN_PREFIX = "codehub_pat_"  # noqa: S105


def new_session_token() -> str:
    return secrets.token_urlsafe(SECRET_BYTES)


def new_api_token() -> str:
    return API_TOKEN_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def hash_token(token: str) -> bytes:
    """Fast and without salt, which is for passwords: nobody can guess 256 bits, and an index finds it."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


async def list_sessions(database: Database, user_id: UUID, *, now: datetime) -> list[SessionView]:
    """Those that can be used, newest first."""
    async with database.transaction() as session:
        return await list_live_sessions(session, user_id, now)


async def revoke_session(database: Database, user_id: UUID, session_id: UUID, *, now: datetime) -> None:
    """End it, or raise CredentialNotFound if it is not theirs or has ended."""
    async with database.transaction() as session:
        if not await revoke_sessions(session, now, user_id=user_id, session_id=session_id):
            raise CredentialNotFound


MOST_TOKENS = 50
LONGEST_NAME = 100


@dataclass(frozen=True)
class CreatedToken:
    """A new token, with the secret that nobody can see again."""

    view: TokenView
    token: str = field(repr=False)


async def create_token(
    database: Database, user_id: UUID, name: str, *, expires_at: datetime | None, now: datetime
) -> CreatedToken:
    view = TokenView(uuid4(), _checked(name), now, expires_at, last_used_at=None, revoked_at=None)
    if expires_at is not None and expires_at <= now:
        raise InvalidExpiry
    token = new_api_token()
    async with database.transaction() as session:
        # Locked, so that the count stays true and nobody is disabled before the token is there to be revoked.
        account = await lock_account(session, user_id)
        if account is None or account.disabled_at is not None:
            raise UserNotFound
        if await count_live_tokens(session, user_id, now) >= MOST_TOKENS:
            raise TooManyTokens(MOST_TOKENS)
        await insert_token(session, user_id, view, hash_token(token))
    return CreatedToken(view, token)


async def list_tokens(database: Database, user_id: UUID) -> list[TokenView]:
    """Those that were not revoked, newest first; expired ones are among them."""
    async with database.transaction() as session:
        return await list_unrevoked_tokens(session, user_id)


async def revoke_token(database: Database, user_id: UUID, token_id: UUID, *, now: datetime) -> None:
    """End it, or raise CredentialNotFound if it is not theirs or was revoked."""
    async with database.transaction() as session:
        if not await revoke_tokens(session, now, user_id=user_id, token_id=token_id):
            raise CredentialNotFound


def _checked(name: str) -> str:
    stripped = name.strip()
    if not 1 <= len(stripped) <= LONGEST_NAME or not stripped.isprintable():
        raise InvalidTokenName(LONGEST_NAME)
    return stripped
