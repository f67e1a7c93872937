"""Hashing and checking passwords; an unknown user takes as long as a known one."""

import asyncio
import secrets
import unicodedata
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import NoReturn, TypeAlias, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError
from sqlalchemy.ext.asyncio import AsyncSession

from codehub.db.accounts import Account, lock_account, set_failures, simulate_failure_write
from codehub.db.session import Database
from codehub.domain.lockout import Failures, account_key
from codehub.services.audit import UNKNOWN, Action, Actor, Outcome, record
from codehub.services.errors import (
    InvalidPassword,
    LockedOut,
    RequestRefused,
    SecondFactorRequired,
    SignInRefused,
)
from codehub.services.lockout import (
    Throttles,
    count_failure,
    forgive,
    lock_throttles,
    longest_lock,
    refuse_while_locked,
)

MIN_LENGTH = 8
MAX_LENGTH = 1024
# Each takes 64 MiB with the recommended parameters of argon2.
MAX_CONCURRENT = 4
GENERATED_BYTES = 15
# For accounts of an identity provider. This is not a valid hash, so no password matches it.
NO_PASSWORD = "!"  # noqa: S105


T = TypeVar("T")
# Runs after the password check in the same transaction; returns a refusal or None.
SecondFactor: TypeAlias = Callable[[AsyncSession, Account], Awaitable[RequestRefused | None]]


def check_password_rules(password: str) -> None:
    """Raise InvalidPassword unless the length is allowed."""
    if not MIN_LENGTH <= len(_normalized(password)) <= MAX_LENGTH:
        raise InvalidPassword(MIN_LENGTH, MAX_LENGTH)


def generate_password() -> str:
    return secrets.token_urlsafe(GENERATED_BYTES)


class Passwords:
    """Hashes passwords; one object per process limits how many at once, and so the memory."""

    def __init__(self, hasher: PasswordHasher | None = None, *, max_concurrent: int = MAX_CONCURRENT) -> None:
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


@dataclass(frozen=True)
class PasswordAttempt:
    """One password entry: by whom, when and for what. Failures go to the audit log."""

    action: Action
    by: Actor
    now: datetime
    throttles: Throttles
    second_factor: SecondFactor | None = None


async def try_password(
    database: Database,
    passwords: Passwords,
    account: Account,
    password: str,
    accepted: Callable[[AsyncSession, Account], Awaitable[T]],
    *,
    attempt: PasswordAttempt,
) -> T:
    """Call `accepted` in the transaction that accepts the password; raise SignInRefused or LockedOut.

    A refusal of the second factor is raised as well; only a wrong one counts as a failure.
    """
    now = attempt.now
    await refuse_while_locked(database, attempt.throttles, now)
    matches = await passwords.verify(account.password_hash, password)
    async with database.transaction() as session:
        current = await lock_account(session, account.user_id)
        if current is None:
            raise SignInRefused
        # Hashing takes a while; the account may have changed since it was read.
        if current.password_hash == account.password_hash:
            failures = await lock_throttles(session, attempt.throttles, now)
            refusal = _refusal(current, longest_lock(failures, now), matches=matches)
            if refusal is None and attempt.second_factor is not None:
                refusal = await attempt.second_factor(session, current)
            if refusal is None:
                await forgive(session, attempt.throttles)
                return await accepted(session, current)
            # During a lock, the right password counts as a failure too: nothing may reveal that it is right.
            if not isinstance(refusal, SecondFactorRequired):
                await _count_failure(session, current, attempt, failures)
        else:
            refusal = None
    if refusal is None:
        return await try_password(database, passwords, current, password, accepted, attempt=attempt)
    raise refusal


async def refuse_unknown_user(
    database: Database, passwords: Passwords, password: str, attempt: PasswordAttempt
) -> NoReturn:
    """Do the same for an unknown user as for a wrong password, with the same errors."""
    await refuse_while_locked(database, attempt.throttles, attempt.now)
    await passwords.verify(None, password)
    async with database.transaction() as session:
        await simulate_failure_write(session)
        failures = await lock_throttles(session, attempt.throttles, attempt.now)
        await _count_failure(session, None, attempt, failures)
    if (left := longest_lock(failures, attempt.now)) is not None:
        raise LockedOut(left)
    raise SignInRefused


async def _count_failure(
    session: AsyncSession, account: Account | None, attempt: PasswordAttempt, before: Mapping[bytes, Failures]
) -> None:
    user_id, now = None if account is None else account.user_id, attempt.now
    after = await count_failure(session, attempt.throttles, before, user_id, now)
    # Do not log unknown names: people sometimes type their password into the wrong field.
    name = None if account is None else account.username
    if account is not None and (total := after.get(account_key(account.username.lower()))) is not None:
        # Shown to administrators.
        await set_failures(session, account.user_id, total)
    # A failed sign-in is not attributed to the user.
    by = Actor(UNKNOWN, address=attempt.by.address) if attempt.action is Action.SIGN_IN else attempt.by
    note = partial(record, session, by=by, target=name, target_id=user_id)
    await note(attempt.action, now, outcome=Outcome.FAILURE)
    locks = {key.partition(" ")[0]: each.locked_until for key, each in after.items() if each.locked_until}
    for kind, until in locks.items():
        await note(Action.LOCKOUT, now, detail={"of": kind, "locked_until": until.isoformat()})


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


def _refusal(account: Account, lock: timedelta | None, *, matches: bool) -> RequestRefused | None:
    """Return why the attempt is refused; the lock comes first, because of concurrent attempts."""
    if lock is not None:
        return LockedOut(lock)
    if not matches or account.disabled_at is not None:
        return SignInRefused()
    return None
