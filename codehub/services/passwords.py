"""Passwords: argon2id, in a few threads, with the same work whether or not the user exists."""

import asyncio
import secrets
import unicodedata
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from codehub.services.errors import InvalidPassword
from codehub.services.unknown_names import UnknownNames

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
        self.unknown_names = UnknownNames()
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
