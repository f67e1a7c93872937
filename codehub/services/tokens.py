"""A user's personal API tokens: shown once, kept as a hash."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid4

from codehub.db.accounts import lock_account
from codehub.db.credentials import TokenView, count_live_tokens, insert_token, revoke_tokens, tokens_of
from codehub.db.session import Database
from codehub.services.errors import (
    CredentialNotFound,
    InvalidExpiry,
    InvalidTokenName,
    TooManyTokens,
    UserNotFound,
)
from codehub.services.secret_tokens import hash_token, new_api_token

__all__ = ["CreatedToken", "TokenView", "create_token", "list_tokens", "revoke_token"]

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
        return await tokens_of(session, user_id)


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
