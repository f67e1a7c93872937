"""The people who may sign in, as an administrator manages them."""

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import (
    Account,
    Role,
    find_account,
    has_enabled_admin,
    insert_account,
    list_accounts,
    load_account,
    lock_account,
    lock_admins,
    set_password_hash,
    update_account,
)
from codehub.db.credentials import revoke_sessions, revoke_tokens
from codehub.db.session import Database
from codehub.services.errors import InvalidUsername, LastAdmin, UsernameTaken, UserNotFound
from codehub.services.passwords import Passwords, check_password_rules

USERNAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@dataclass(frozen=True)
class UserView:
    """A user, as an administrator may see it."""

    id: UUID
    username: str
    role: str
    created_at: datetime
    disabled_at: datetime | None
    locked_until: datetime | None


def check_username_rules(username: str) -> None:
    """Raise InvalidUsername unless somebody may have it."""
    if not USERNAME.fullmatch(username):
        raise InvalidUsername


async def add_user(
    database: Database,
    passwords: Passwords,
    username: str,
    password: str,
    *,
    role: str = "user",
    now: datetime,
) -> UserView:
    check_username_rules(username)
    check_password_rules(password)
    password_hash = await passwords.hash(password)
    async with database.transaction() as session:
        account = await insert_account(session, username, password_hash, Role(role), now)
    if account is None:
        raise UsernameTaken(username)
    return _view(account)


async def set_password(
    database: Database, passwords: Passwords, username_or_id: str | UUID, password: str, now: datetime
) -> UserView:
    """Set somebody's password: every session ends, and a lock-out is over."""
    check_password_rules(password)
    password_hash = await passwords.hash(password)
    async with database.transaction() as session:
        user_id = _found(await _look_up(session, username_or_id)).user_id
        account = _found(await set_password_hash(session, user_id, password_hash))
        await revoke_sessions(session, now, user_id=user_id)
    return _view(account)


async def disable_user(database: Database, user_id: UUID, *, now: datetime) -> UserView:
    """Shut somebody out at once: sessions and tokens are revoked, and enabling does not bring them back."""
    async with database.transaction() as session:
        await lock_admins(session)
        account = _found(await lock_account(session, user_id))
        if account.disabled_at is None:
            await _keep_an_admin(session, account)
            account = _found(await update_account(session, user_id, disabled_at=now))
        await revoke_sessions(session, now, user_id=user_id)
        await revoke_tokens(session, now, user_id=user_id)
    return _view(account)


async def enable_user(database: Database, user_id: UUID) -> UserView:
    async with database.transaction() as session:
        return _view(_found(await update_account(session, user_id, disabled_at=None)))


async def set_role(database: Database, user_id: UUID, role: str) -> UserView:
    """Make somebody an administrator, or no longer one; open sessions and tokens follow at once."""
    async with database.transaction() as session:
        await lock_admins(session)
        account = _found(await lock_account(session, user_id))
        if role != Role.ADMIN:
            await _keep_an_admin(session, account)
        return _view(_found(await update_account(session, user_id, role=Role(role))))


async def list_users(database: Database, *, after: str | None = None, limit: int) -> list[UserView]:
    """One page, by name; `after` is the last name of the page before."""
    async with database.transaction() as session:
        return [_view(account) for account in await list_accounts(session, after=after, limit=limit)]


async def load_user(database: Database, user_id: UUID) -> UserView:
    async with database.transaction() as session:
        return _view(_found(await load_account(session, user_id)))


async def find_user(database: Database, username: str) -> UserView:
    """By name, upper or lower case."""
    async with database.transaction() as session:
        return _view(_found(await find_account(session, username)))


async def _keep_an_admin(session: AsyncSession, account: Account) -> None:
    """Only while the admins are locked: otherwise two could each take the other for the one that stays."""
    is_active_admin = account.role == Role.ADMIN and account.disabled_at is None
    if is_active_admin and not await has_enabled_admin(session, besides=account.user_id):
        raise LastAdmin


async def _look_up(session: AsyncSession, username_or_id: str | UUID) -> Account | None:
    if isinstance(username_or_id, UUID):
        return await load_account(session, username_or_id)
    return await find_account(session, username_or_id)


def _found(account: Account | None) -> Account:
    if account is None:
        raise UserNotFound
    return account


def _view(account: Account) -> UserView:
    return UserView(
        id=account.user_id,
        username=account.username,
        role=account.role,
        created_at=account.created_at,
        disabled_at=account.disabled_at,
        locked_until=account.failures.locked_until,
    )
