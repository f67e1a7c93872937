"""Managing users."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import (
    Account,
    Role,
    count_accounts,
    find_account,
    has_admin,
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
from codehub.db.sign_in_failures import forget_failures_of, forget_places
from codehub.services.audit import SYSTEM, Action, Actor, record
from codehub.services.errors import (
    InvalidUsername,
    LastAdmin,
    SingleAccountOnly,
    UsernameTaken,
    UserNotFound,
)
from codehub.services.passwords import Passwords, check_password_rules, generate_password

USERNAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


ADMIN_NAME = "admin"


@dataclass(frozen=True)
class UserView:
    """A user, as administrators see it."""

    id: UUID
    username: str
    role: str
    created_at: datetime
    disabled_at: datetime | None
    locked_until: datetime | None


@dataclass(frozen=True)
class UserChange:
    """What to change; None leaves a field as it is."""

    role: str | None = None
    disabled: bool | None = None
    password_hash: str | None = None


async def ensure_admin(session: AsyncSession) -> str | None:
    """Create the first administrator and return its password, which is not stored; None if there is one."""
    if await has_admin(session):
        return None
    password = generate_password()
    password_hash = await Passwords().hash(password)
    now = datetime.now(UTC)
    # Another `codehub up` on the same database may have been faster.
    created = await insert_account(session, ADMIN_NAME, password_hash, Role.ADMIN, now)
    if created is None:
        return None
    await _record(session, Action.USER_ADD, created, now, SYSTEM, role=created.role)
    return password


async def require_single_account(database: Database) -> None:
    """Raise SingleAccountOnly if there are several accounts."""
    async with database.transaction() as session:
        if await count_accounts(session) > 1:
            raise SingleAccountOnly


async def hash_new_password(passwords: Passwords, password: str) -> str:
    """Hash a new password; raise InvalidPassword if it breaks the rules."""
    check_password_rules(password)
    return await passwords.hash(password)


def check_username_rules(username: str) -> None:
    """Raise InvalidUsername if the name breaks the rules."""
    if not USERNAME.fullmatch(username):
        raise InvalidUsername


async def add_user(
    database: Database,
    passwords: Passwords,
    username: str,
    password: str,
    *,
    role: str = "user",
    single: bool = False,
    by: Actor,
    now: datetime,
) -> UserView:
    """Add an account; with `single`, only the first one."""
    check_username_rules(username)
    password_hash = await hash_new_password(passwords, password)
    async with database.transaction() as session:
        if single and await count_accounts(session) > 0:
            raise SingleAccountOnly
        account = await insert_account(session, username, password_hash, Role(role), now)
        if account is None:
            raise UsernameTaken(username)
        await _record(session, Action.USER_ADD, account, now, by, role=account.role)
    return _view(account)


async def set_password(
    database: Database,
    passwords: Passwords,
    username_or_id: str | UUID,
    password: str,
    *,
    by: Actor,
    now: datetime,
) -> UserView:
    """Set the password of a user; this ends all sessions, all tokens and a lock."""
    password_hash = await hash_new_password(passwords, password)
    async with database.transaction() as session:
        account = _require(await _look_up(session, username_or_id))
        return _view(await _set_password(session, account, password_hash, now, by))


async def change_user(
    database: Database, user_id: UUID, change: UserChange, *, by: Actor, now: datetime
) -> UserView:
    """Make all changes or none; a new role applies to open sessions and tokens at once."""
    async with database.transaction() as session:
        await lock_admins(session)
        account = _require(await lock_account(session, user_id))
        if change.role is not None:
            account = await _set_role(session, account, Role(change.role), now, by)
        if change.disabled is not None:
            account = await _set_disabled(session, account, disabled=change.disabled, now=now, by=by)
        if change.password_hash is not None:
            account = await _set_password(session, account, change.password_hash, now, by)
    return _view(account)


async def disable_user(database: Database, user_id: UUID, *, by: Actor, now: datetime) -> UserView:
    """Disable a user and revoke all sessions and tokens; enabling does not bring them back."""
    return await change_user(database, user_id, UserChange(disabled=True), by=by, now=now)


async def enable_user(database: Database, user_id: UUID, *, by: Actor, now: datetime) -> UserView:
    return await change_user(database, user_id, UserChange(disabled=False), by=by, now=now)


async def list_users(database: Database, *, after: str | None = None, limit: int) -> list[UserView]:
    """Return one page, ordered by name; `after` is the last name of the previous page."""
    async with database.transaction() as session:
        return [_view(account) for account in await list_accounts(session, after=after, limit=limit)]


async def load_user(database: Database, user_id: UUID) -> UserView:
    async with database.transaction() as session:
        return _view(_require(await load_account(session, user_id)))


async def find_user(database: Database, username: str) -> UserView:
    """Find a user by name, ignoring case."""
    async with database.transaction() as session:
        return _view(_require(await find_account(session, username)))


async def _set_role(session: AsyncSession, account: Account, role: Role, now: datetime, by: Actor) -> Account:
    if role != Role.ADMIN:
        await _require_other_admin(session, account)
    await _record(session, Action.USER_ROLE, account, now, by, role=role, before=account.role)
    return _require(await update_account(session, account.user_id, role=role))


async def _set_disabled(
    session: AsyncSession, account: Account, *, disabled: bool, now: datetime, by: Actor
) -> Account:
    action = Action.USER_DISABLE if disabled else Action.USER_ENABLE
    await _record(session, action, account, now, by)
    if not disabled:
        return _require(await update_account(session, account.user_id, disabled_at=None))
    if account.disabled_at is None:
        await _require_other_admin(session, account)
        account = _require(await update_account(session, account.user_id, disabled_at=now))
    await revoke_sessions(session, now, user_id=account.user_id)
    await revoke_tokens(session, now, user_id=account.user_id)
    return account


async def _set_password(
    session: AsyncSession, account: Account, password_hash: str, now: datetime, by: Actor
) -> Account:
    await _record(session, Action.USER_PASSWORD, account, now, by)
    await revoke_sessions(session, now, user_id=account.user_id)
    await revoke_tokens(session, now, user_id=account.user_id)
    # An attacker with the old password may have signed in from these places.
    await forget_places(session, account.user_id)
    await forget_failures_of(session, account.user_id)
    return _require(await set_password_hash(session, account.user_id, password_hash))


async def _require_other_admin(session: AsyncSession, account: Account) -> None:
    """Raise LastAdmin if no other administrator is enabled. Call it only under `lock_admins`."""
    is_active_admin = account.role == Role.ADMIN and account.disabled_at is None
    if is_active_admin and not await has_enabled_admin(session, excluding=account.user_id):
        raise LastAdmin


async def _record(
    session: AsyncSession, action: Action, account: Account, now: datetime, by: Actor, **detail: object
) -> None:
    await record(
        session, action, now, by=by, target=account.username, target_id=account.user_id, detail=detail
    )


async def _look_up(session: AsyncSession, username_or_id: str | UUID) -> Account | None:
    if isinstance(username_or_id, UUID):
        return await load_account(session, username_or_id)
    return await find_account(session, username_or_id)


def _require(account: Account | None) -> Account:
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
