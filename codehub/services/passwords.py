"""Hashing and checking passwords; an unknown user takes as long as a known one."""

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

MIN_LENGTH = 8
MAX_LENGTH = 1024
# Each takes 64 MiB with the recommended parameters of argon2.
MAX_CONCURRENT = 4
GENERATED_BYTES = 15

MAX_NAMES = 10_000


T = TypeVar("T")


def check_password_rules(password: str) -> None:
    """Raise InvalidPassword unless the length is allowed."""
    if not MIN_LENGTH <= len(_normalized(password)) <= MAX_LENGTH:
        raise InvalidPassword(MIN_LENGTH, MAX_LENGTH)


def generate_password() -> str:
    return secrets.token_urlsafe(GENERATED_BYTES)


class UnknownUsers:
    """Counts failures of unknown user names in memory, so that a lock does not reveal which names exist.

    Limits: a restart forgets the counts, other API processes do not see them, and after `max_names` more
    unknown names the oldest is dropped. An attacker who causes one of these can find out whether a name
    exists; real users stay locked.
    """

    def __init__(self, max_names: int = MAX_NAMES) -> None:
        self._max_names = max_names
        self._failures: OrderedDict[bytes, Failures] = OrderedDict()

    def failures(self, username: str) -> Failures:
        return self._failures.get(_key(username), Failures())

    def count_failure(self, username: str, now: datetime) -> None:
        key = _key(username)
        self._failures[key] = add_failure(self._failures.pop(key, Failures()), now)
        if len(self._failures) > self._max_names:
            self._failures.popitem(last=False)


class Passwords:
    """Hashes passwords; one object per process limits how many at once, and so the memory."""

    def __init__(self, hasher: PasswordHasher | None = None, *, max_concurrent: int = MAX_CONCURRENT) -> None:
        self.unknown_users = UnknownUsers()
        self._hasher = hasher or PasswordHasher()
        self._dummy_hash = _hash_of_nothing(self._hasher)
        # Its own pool instead of a semaphore: a thread continues when its request is canceled, and must count
        # until it has finished.
        self._threads = ThreadPoolExecutor(max_concurrent, thread_name_prefix="passwords")

    async def hash(self, password: str) -> str:
        return await self._in_thread(lambda: self._hasher.hash(_bytes(password)))

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Return whether the password is right; an unknown user (None) takes as long."""
        return await self._in_thread(lambda: self._verify(password_hash or self._dummy_hash, password))

    def is_outdated(self, password_hash: str) -> bool:
        """Return whether the hash has other than the current parameters."""
        return self._hasher.check_needs_rehash(password_hash)

    def _verify(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, _bytes(password))
        except VerifyMismatchError:
            return False
        except InvalidHashError:
            # Not a hash of argon2, so no password matches; take the same time.
            return self._verify(self._dummy_hash, password)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


async def try_password(
    database: Database,
    passwords: Passwords,
    account: Account,
    password: str,
    accepted: Callable[[AsyncSession, Account], Awaitable[T]],
    *,
    now: datetime,
) -> T:
    """Call `accepted` in the transaction that accepts the password; raise SignInRefused or LockedOut."""
    _refuse_while_locked(account.failures, now)
    matches = await passwords.verify(account.password_hash, password)
    async with database.transaction() as session:
        current = await lock_account(session, account.user_id)
        if current is None:
            raise SignInRefused
        # Hashing takes a while; the account may have changed since it was read.
        if current.password_hash == account.password_hash:
            refusal = _refusal(current, matches, now)
            if refusal is None:
                await set_failures(session, current.user_id, Failures())
                return await accepted(session, current)
            # During a lock, the right password counts as a failure too: nothing may reveal that it is right.
            await set_failures(session, current.user_id, add_failure(current.failures, now))
        else:
            refusal = None
    if refusal is None:
        return await try_password(database, passwords, current, password, accepted, now=now)
    raise refusal


async def refuse_unknown_user(
    database: Database, passwords: Passwords, username: str, password: str, *, now: datetime
) -> NoReturn:
    """Do the same for an unknown user as for a wrong password, with the same errors."""
    names = passwords.unknown_users
    _refuse_while_locked(names.failures(username), now)
    await passwords.verify(None, password)
    async with database.transaction() as session:
        await simulate_failure_write(session)
    before = names.failures(username)
    names.count_failure(username, now)
    _refuse_while_locked(before, now)
    raise SignInRefused


def _hash_of_nothing(hasher: PasswordHasher) -> str:
    """Return a hash with the parameters of the hasher that no password has: all bits are zero."""
    parameters = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    salt, digest = (
        b64encode(bytes(length)).decode().rstrip("=") for length in (hasher.salt_len, hasher.hash_len)
    )
    return f"$argon2id$v=19${parameters}${salt}${digest}"


def _normalized(password: str) -> str:
    # The same letter may be one code point or two, depending on the keyboard.
    return unicodedata.normalize("NFC", password)


def _bytes(password: str) -> bytes:
    return _normalized(password).encode(errors="surrogatepass")


def _key(username: str) -> bytes:
    """Return a key of fixed size."""
    return hashlib.sha256(username.lower().encode(errors="surrogatepass")).digest()


def _refusal(account: Account, matches: bool, now: datetime) -> RequestRefused | None:
    """Return why the attempt is refused; the lock comes first, because of concurrent attempts."""
    if (left := remaining_lock(account.failures, now)) is not None:
        return LockedOut(left)
    if not matches or account.disabled_at is not None:
        return SignInRefused()
    return None


def _refuse_while_locked(failures: Failures, now: datetime) -> None:
    if (left := remaining_lock(failures, now)) is not None:
        raise LockedOut(left)
