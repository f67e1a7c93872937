"""Rows of users."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, Select, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.models import User
from codehub.domain.lockout import Failures

# The key of a PostgreSQL advisory lock: "admins" in ASCII.
ADMINS_LOCK = 0x61646D696E73


class Role(StrEnum):
    """What a user may do."""

    USER = "user"
    ADMIN = "admin"


@dataclass(frozen=True)
class Account:
    """A user's row."""

    user_id: UUID
    username: str
    role: str
    password_hash: str = field(repr=False)
    created_at: datetime
    disabled_at: datetime | None
    failures: Failures


async def find_account(session: AsyncSession, username: str) -> Account | None:
    """Find a user by name, ignoring case; return None if there is none."""
    if not _can_be_stored(username):
        return None
    found = await session.execute(_select().where(func.lower(User.username) == func.lower(username)))
    return _optional(found.one_or_none())


async def load_account(session: AsyncSession, user_id: UUID) -> Account | None:
    found = await session.execute(_select().where(User.id == user_id))
    return _optional(found.one_or_none())


async def lock_account(session: AsyncSession, user_id: UUID) -> Account | None:
    """Lock the row: until the transaction ends the user cannot sign in, be disabled or get a token."""
    found = await session.execute(_select().where(User.id == user_id).with_for_update(key_share=True))
    return _optional(found.one_or_none())


async def list_accounts(session: AsyncSession, *, after: str | None, limit: int) -> list[Account]:
    """Return one page, ordered by name; `after` is the last name of the previous page."""
    name = func.lower(User.username)
    statement = _select().order_by(name).limit(limit)
    if after is not None:
        statement = statement.where(name > func.lower(after))
    return [_to_account(row) for row in await session.execute(statement)]


async def insert_account(
    session: AsyncSession, username: str, password_hash: str, role: str, now: datetime
) -> Account | None:
    """Add a user; return None if the name is taken."""
    values = {
        "id": uuid4(),
        "username": username,
        "password_hash": password_hash,
        "role": role,
        "created_at": now,
    }
    created = await session.execute(
        insert(User).values(values).on_conflict_do_nothing().returning(*_columns())
    )
    return _optional(created.one_or_none())


async def update_account(session: AsyncSession, user_id: UUID, **columns: object) -> Account | None:
    """Update the columns; return None if there is no such user."""
    changed = await session.execute(
        update(User).where(User.id == user_id).values(**columns).returning(*_columns())
    )
    return _optional(changed.one_or_none())


async def set_failures(session: AsyncSession, user_id: UUID, failures: Failures) -> None:
    await update_account(
        session, user_id, failed_login_count=failures.count, locked_until=failures.locked_until
    )


async def set_password_hash(session: AsyncSession, user_id: UUID, password_hash: str) -> Account | None:
    """Set a new password and forget the failures of the old one."""
    return await update_account(
        session, user_id, password_hash=password_hash, failed_login_count=0, locked_until=None
    )


async def replace_password_hash(session: AsyncSession, user_id: UUID, old: str, new: str) -> None:
    """Replace the hash of the same password, unless the password was changed meanwhile."""
    await session.execute(
        update(User).where(User.id == user_id, User.password_hash == old).values(password_hash=new)
    )


async def simulate_failure_write(session: AsyncSession) -> None:
    """Take as long as counting a failure does, for a user name without a row.

    The message goes only to the write-ahead log, so that the commit has something to flush.
    """
    await lock_account(session, uuid4())
    await session.execute(select(func.pg_logical_emit_message(True, "codehub", "")))


async def lock_admins(session: AsyncSession) -> None:
    """Serialize transactions that remove an administrator. Call it before locking any row."""
    await session.execute(select(func.pg_advisory_xact_lock(ADMINS_LOCK)))


async def count_accounts(session: AsyncSession) -> int:
    return await session.scalar(select(func.count()).select_from(User)) or 0


async def has_admin(session: AsyncSession) -> bool:
    return bool(await session.scalar(select(exists().where(User.role == Role.ADMIN))))


async def has_enabled_admin(session: AsyncSession, *, excluding: UUID) -> bool:
    others = (User.role == Role.ADMIN, User.disabled_at.is_(None), User.id != excluding)
    return bool(await session.scalar(select(exists().where(*others))))


def _columns() -> tuple[Any, ...]:
    return (
        User.id,
        User.username,
        User.role,
        User.password_hash,
        User.created_at,
        User.disabled_at,
        User.failed_login_count,
        User.locked_until,
    )


def _select() -> Select[*tuple[Any, ...]]:
    return select(*_columns())


def _optional(row: Row[*tuple[Any, ...]] | None) -> Account | None:
    return _to_account(row) if row else None


def _to_account(row: Row[*tuple[Any, ...]]) -> Account:
    return Account(
        user_id=row.id,
        username=row.username,
        role=row.role,
        password_hash=row.password_hash,
        created_at=row.created_at,
        disabled_at=row.disabled_at,
        failures=Failures(row.failed_login_count, row.locked_until),
    )


def _can_be_stored(text: str) -> bool:
    """Return whether PostgreSQL accepts the text: it has no NUL and no unpaired surrogate."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
