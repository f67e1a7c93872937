"""Passwords: argon2id, in a few threads, with the same work whether or not the user exists."""

import asyncio
import hashlib
import secrets
import unicodedata
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import NoReturn, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import Account, lock_account, set_failures, simulate_failure_write
from codehub.db.session import Database
from codehub.domain.lockout import Failures, add_failure, remaining_lock
from codehub.services.errors import InvalidPassword, LockedOut, RequestRefused, SignInRefused

SHORTEST = 8
LONGEST = 1024
# Each takes 64 MiB with the parameters that argon2's authors recommend.
MOST_AT_ONCE = 4
GENERATED_BYTES = 15

T = TypeVar("T")


def check_password_rules(password: str) -> None:
    """Raise InvalidPassword unless somebody may have it."""
    if not SHORTEST <= len(_normalized(password)) <= LONGEST:
        raise InvalidPassword(SHORTEST, LONGEST)


def generate_password() -> str:
    return secrets.token_urlsafe(GENERATED_BYTES)


class Passwords:
    """One per process: it bounds how many passwords are hashed at once, and so the memory that this takes."""

    def __init__(self, hasher: PasswordHasher | None = None, *, most_at_once: int = MOST_AT_ONCE) -> None:
        self.unknown_users = UnknownUsers()
        self._hasher = hasher or PasswordHasher()
        self._dummy_hash = _hash_of_nothing(self._hasher)
        # A pool of its own instead of a semaphore: a thread goes on when the request that waits for it is
        # cancelled, and must count until it has ended.
        self._threads = ThreadPoolExecutor(most_at_once, thread_name_prefix="passwords")

    async def hash(self, password: str) -> str:
        return await self._in_thread(lambda: self._hasher.hash(_bytes(password)))

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Whether it is the password. None, for a user that does not exist, takes as long and is False."""
        return await self._in_thread(lambda: self._verify(password_hash or self._dummy_hash, password))

    def is_outdated(self, password_hash: str) -> bool:
        """Whether it was made with other parameters than those of today."""
        return self._hasher.check_needs_rehash(password_hash)

    def _verify(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, _bytes(password))
        except VerifyMismatchError:
            return False
        except InvalidHashError:
            # Nothing that argon2 knows, so nobody can sign in with it; that, too, takes as long.
            return self._verify(self._dummy_hash, password)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _hash_of_nothing(hasher: PasswordHasher) -> str:
    """A hash with the hasher's parameters that no password has: all its bits are zero."""
    parameters = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    salt, digest = (
        b64encode(bytes(length)).decode().rstrip("=") for length in (hasher.salt_len, hasher.hash_len)
    )
    return f"$argon2id$v=19${parameters}${salt}${digest}"


def _normalized(password: str) -> str:
    # The same letter may come in one piece or two, depending on the keyboard.
    return unicodedata.normalize("NFC", password)


def _bytes(password: str) -> bytes:
    return _normalized(password).encode(errors="surrogatepass")


MOST_NAMES = 10_000


class UnknownUsers:
    """Counts as the rows of real users do, but in the memory of this process.

    Its limits: a restart forgets it, other API processes do not see it, and after `most` further unknown
    names, each of which costs a verification, the one that was tried longest ago is forgotten. Somebody who
    brings one of these about can find out whether a name exists; real users stay locked all the same.
    """

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most = most
        self._failures: OrderedDict[bytes, Failures] = OrderedDict()

    def failures(self, username: str) -> Failures:
        return self._failures.get(_key(username), Failures())

    def count_failure(self, username: str, now: datetime) -> None:
        key = _key(username)
        self._failures[key] = add_failure(self._failures.pop(key, Failures()), now)
        if len(self._failures) > self._most:
            self._failures.popitem(last=False)


def _key(username: str) -> bytes:
    """Of one size, however long the name is."""
    return hashlib.sha256(username.lower().encode(errors="surrogatepass")).digest()


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
            await set_failures(session, current.user_id, add_failure(current.failures, now))
        else:
            refusal = None
    if refusal is None:
        return await try_password(database, passwords, current, password, accepted, now=now)
    raise refusal


async def refuse_unknown_user(
    database: Database, passwords: Passwords, username: str, password: str, *, now: datetime
) -> NoReturn:
    """Do for a name that nobody has what is done for a wrong password, with the same answers."""
    names = passwords.unknown_users
    _refuse_while_locked(names.failures(username), now)
    await passwords.verify(None, password)
    async with database.transaction() as session:
        await simulate_failure_write(session)
    before = names.failures(username)
    names.count_failure(username, now)
    _refuse_while_locked(before, now)
    raise SignInRefused


def _refusal(account: Account, matches: bool, now: datetime) -> RequestRefused | None:
    """Locked comes first: others, at the same time, may have used up the tries."""
    if (left := remaining_lock(account.failures, now)) is not None:
        return LockedOut(left)
    if not matches or account.disabled_at is not None:
        return SignInRefused()
    return None


def _refuse_while_locked(failures: Failures, now: datetime) -> None:
    if (left := remaining_lock(failures, now)) is not None:
        raise LockedOut(left)
