"""People who sign in, for tests: real argon2id that costs next to nothing, and counts what it is asked."""

import asyncio
from datetime import datetime, timedelta
from typing import Literal

from argon2 import PasswordHasher
from sqlalchemy import select

from codehub.db.models import User
from codehub.db.session import Database
from codehub.domain.lockout import Failures
from codehub.services import users
from codehub.services.identity import SessionTimes, SignedIn, SignInClient, sign_in
from codehub.services.passwords import Passwords
from codehub.services.users import UserView
from testkit.rows import BY, NOW

CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
PASSWORD = "correct horse"  # noqa: S105
WRONG = "wrong horse"
LIFETIME = timedelta(hours=8)
HERE = SignInClient("192.0.2.1", "Firefox")


class CountingHasher(PasswordHasher):
    """Counts verifications that were really done, and remembers the parameters that they were done with."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.verified: list[str] = []

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002
        self.verified.append(str(hash).rpartition("$")[0].rpartition("$")[0])
        return super().verify(hash, password)


class PasswordsTogether(Passwords):
    """Answers only when so many have asked, so that all of them were let in before the first was judged."""

    def __init__(self, count: int) -> None:
        super().__init__(CHEAP)
        self._missing = count
        self._all_here = asyncio.Event()

    async def verify(self, password_hash: str | None, password: str) -> bool:
        self._missing -= 1
        if self._missing == 0:
            self._all_here.set()
        await self._all_here.wait()
        return await super().verify(password_hash, password)


async def add(database: Database, username: str = "ann", role: str = "user") -> UserView:
    return await users.add_user(
        database, Passwords(CHEAP), username, PASSWORD, role=role, single=False, by=BY, now=NOW
    )


async def enter(
    database: Database,
    username: str = "ann",
    password: str = PASSWORD,
    *,
    passwords: Passwords | None = None,
    lifetime: timedelta = LIFETIME,
    client: SignInClient = HERE,
    now: datetime = NOW,
) -> SignedIn:
    return await sign_in(
        database,
        passwords or Passwords(CHEAP),
        username,
        password,
        times=SessionTimes(lifetime),
        client=client,
        now=now,
    )


async def failures_of(database: Database, username: str = "ann") -> Failures:
    """Return the failures for an account from places that it does not know, as administrators see them."""
    statement = select(User.failed_login_count, User.locked_until).where(User.username == username)
    async with database.transaction() as session:
        row = (await session.execute(statement)).one()
    return Failures(row[0], row[1])
