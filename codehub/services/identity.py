"""Signing in and out, and finding the user of a session or a token."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import (
    Account,
    Role,
    find_account,
    load_account,
    replace_password_hash,
    set_password_hash,
)
from codehub.db.credentials import (
    Holder,
    SessionView,
    delete_ended_sessions,
    insert_session,
    revoke_sessions,
    use_session,
    use_token,
)
from codehub.db.session import Database
from codehub.services.credentials import API_TOKEN_PREFIX, hash_token, new_session_token
from codehub.services.errors import SignInRefused
from codehub.services.passwords import Passwords, check_password_rules, refuse_unknown_user, try_password

MAX_USER_AGENT_LENGTH = 512


class Credential(StrEnum):
    """What a caller authenticates with."""

    SESSION = "session"
    TOKEN = "token"  # noqa: S105


@dataclass(frozen=True)
class Caller:
    """An authenticated user, and the credential that was used."""

    user_id: UUID
    username: str
    role: str
    credential: Credential
    credential_id: UUID
    expires_at: datetime | None

    @property
    def is_admin(self) -> bool:
        return self.role == Role.ADMIN


@dataclass(frozen=True)
class SignedIn:
    """A new session; its token goes into the cookie and is not stored."""

    caller: Caller
    token: str = field(repr=False)


async def sign_in(
    database: Database,
    passwords: Passwords,
    username: str,
    password: str,
    *,
    lifetime: timedelta,
    user_agent: str | None,
    now: datetime,
) -> SignedIn:
    """Open a session; raise SignInRefused or LockedOut, which do not reveal whether the user exists."""
    async with database.transaction() as session:
        account = await find_account(session, username)
    if account is None:
        await refuse_unknown_user(database, passwords, username, password, now=now)
    token = new_session_token()

    async def open_session(session: AsyncSession, account: Account) -> Caller:
        new = SessionView(uuid4(), now, now + lifetime, now, _truncate(user_agent))
        await delete_ended_sessions(session, account.user_id, now)
        await insert_session(session, account.user_id, new, hash_token(token))
        return Caller(
            account.user_id, account.username, account.role, Credential.SESSION, new.id, new.expires_at
        )

    caller = await try_password(database, passwords, account, password, open_session, now=now)
    await _renew_hash(database, passwords, account, password)
    return SignedIn(caller, token)


async def sign_out(database: Database, session_id: UUID, *, now: datetime) -> None:
    """End the session; do nothing if it has ended already."""
    async with database.transaction() as session:
        await revoke_sessions(session, now, session_id=session_id)


async def find_session(database: Database, token: str, *, now: datetime) -> Caller | None:
    """Return the user of the cookie; None if it is unknown, expired or revoked, or the user disabled."""
    async with database.transaction() as session:
        holder = await use_session(session, hash_token(token), now)
    return _caller(holder, Credential.SESSION)


async def find_token(database: Database, token: str, *, now: datetime) -> Caller | None:
    """Return the user of the token; None if it is unknown, expired or revoked, or the user disabled."""
    if not token.startswith(API_TOKEN_PREFIX):
        return None
    async with database.transaction() as session:
        holder = await use_token(session, hash_token(token), now)
    return _caller(holder, Credential.TOKEN)


async def change_password(
    database: Database, passwords: Passwords, caller: Caller, current: str, new: str, *, now: datetime
) -> None:
    """Set the caller's password and end the other sessions; a wrong current password counts as a failure."""
    check_password_rules(new)
    async with database.transaction() as session:
        account = await load_account(session, caller.user_id)
    if account is None:
        raise SignInRefused
    new_hash = await passwords.hash(new)
    own = caller.credential_id if caller.credential is Credential.SESSION else None

    async def set_new(session: AsyncSession, account: Account) -> None:
        await set_password_hash(session, account.user_id, new_hash)
        await revoke_sessions(session, now, user_id=account.user_id, excluding=own)

    try:
        await try_password(database, passwords, account, current, set_new, now=now)
    except SignInRefused as refusal:
        raise SignInRefused("The current password is wrong; nothing was changed.") from refusal


async def _renew_hash(database: Database, passwords: Passwords, account: Account, password: str) -> None:
    """Hash the password with the current parameters if its hash has older ones."""
    if passwords.is_outdated(account.password_hash):
        renewed = await passwords.hash(password)
        async with database.transaction() as session:
            await replace_password_hash(session, account.user_id, account.password_hash, renewed)


def _caller(holder: Holder | None, credential: Credential) -> Caller | None:
    if holder is None:
        return None
    return Caller(
        user_id=holder.user_id,
        username=holder.username,
        role=holder.role,
        credential=credential,
        credential_id=holder.credential_id,
        expires_at=holder.expires_at,
    )


def _truncate(user_agent: str | None) -> str | None:
    # The header may contain anything; PostgreSQL does not accept NUL.
    return user_agent and user_agent.replace("\0", "")[:MAX_USER_AGENT_LENGTH]
