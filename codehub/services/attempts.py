"""One try of a password: judged exactly, counted if refused, however many come at once."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NoReturn, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import Account, lock_account, set_failures, write_like_a_failure
from codehub.db.session import Database
from codehub.domain.lockout import Failures, time_left, with_one_more
from codehub.services.errors import LockedOut, RequestRefused, SignInRefused
from codehub.services.passwords import Passwords

T = TypeVar("T")


async def try_password(
    database: Database,
    passwords: Passwords,
    account: Account,
    password: str,
    accepted: Callable[[AsyncSession, Account], Awaitable[T]],
    *,
    now: datetime,
) -> T:
    """Do what is to be done with the right password, in the transaction that accepts it; or refuse."""
    _refuse_while_locked(account.failures, now)
    matches = await passwords.verify(account.password_hash, password)
    async with database.transaction() as session:
        current = await lock_account(session, account.user_id)
        if current is None:
            raise SignInRefused
        # Hashing takes a while, and the account may have changed since it was read.
        if current.password_hash == account.password_hash:
            refusal = _refusal(current, matches, now)
            if refusal is None:
                await set_failures(session, current.user_id, Failures())
                return await accepted(session, current)
            # The right password that comes too late is counted too: nothing may tell it from a wrong one.
            await set_failures(session, current.user_id, with_one_more(current.failures, now))
        else:
            refusal = None
    if refusal is None:
        return await try_password(database, passwords, current, password, accepted, now=now)
    raise refusal


async def refuse_unknown(
    database: Database, passwords: Passwords, username: str, password: str, *, now: datetime
) -> NoReturn:
    """Do for a name that nobody has what is done for a wrong password, with the same answers."""
    names = passwords.unknown_names
    _refuse_while_locked(names.failures(username), now)
    await passwords.verify(None, password)
    async with database.transaction() as session:
        await write_like_a_failure(session)
    before = names.failures(username)
    names.count_failure(username, now)
    _refuse_while_locked(before, now)
    raise SignInRefused


def _refusal(account: Account, matches: bool, now: datetime) -> RequestRefused | None:
    """Locked comes first: others, at the same time, may have used up the tries."""
    if (left := time_left(account.failures, now)) is not None:
        return LockedOut(left)
    if not matches or account.disabled_at is not None:
        return SignInRefused()
    return None


def _refuse_while_locked(failures: Failures, now: datetime) -> None:
    if (left := time_left(failures, now)) is not None:
        raise LockedOut(left)
