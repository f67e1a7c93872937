"""Locks after wrong passwords: exact, persistent, and the same for unknown users."""

import asyncio
from collections import Counter
from datetime import datetime, timedelta

import pytest

from codehub.db.session import Database, create_engine
from codehub.services import users
from codehub.services.errors import LockedOut, SignInRefused, WrongPassword
from codehub.services.identity import change_password
from codehub.services.passwords import Passwords
from testkit.rows import BY, NOW
from tests.identities import (
    CHEAP,
    PASSWORD,
    WRONG,
    CountingHasher,
    PasswordsTogether,
    add,
    enter,
    failures_of,
)

LOCK = timedelta(seconds=30)


async def fail(
    database: Database,
    passwords: Passwords | None = None,
    username: str = "ann",
    times: int = 1,
    now: datetime = NOW,
) -> None:
    for _ in range(times):
        with pytest.raises(SignInRefused):
            await enter(database, username, WRONG, passwords=passwords, now=now)


async def refusals_of(database: Database, passwords: Passwords, username: str) -> list[tuple[type, object]]:
    """Return what an attacker sees: some attempts at once, then each as soon as it is allowed."""
    seen: list[tuple[type, object]] = []
    now = NOW
    for _ in range(30):
        try:
            await enter(database, username, WRONG, passwords=passwords, now=now)
        except LockedOut as refusal:
            seen.append((LockedOut, refusal.retry_after))
            now += refusal.retry_after
        except SignInRefused as refusal:
            seen.append((SignInRefused, str(refusal)))
    return seen


async def test_fifth_failure_locks_even_for_the_right_password(database: Database) -> None:
    await add(database)
    await fail(database, times=5)
    for password in (WRONG, PASSWORD):
        with pytest.raises(LockedOut, match="try again in 20 seconds") as refusal:
            await enter(database, password=password, now=NOW + timedelta(seconds=10))
        assert refusal.value.retry_after == timedelta(seconds=20)
    assert (await failures_of(database)).count == 5


async def test_nothing_is_hashed_while_locked(database: Database) -> None:
    await add(database)
    await fail(database, times=5)
    hasher = CountingHasher()
    with pytest.raises(LockedOut):
        await enter(database, passwords=Passwords(hasher))
    assert hasher.verified == []


async def test_success_after_the_lock_resets_the_count(database: Database) -> None:
    await add(database)
    await fail(database, times=5)
    await enter(database, now=NOW + LOCK)
    await fail(database, times=4, now=NOW + LOCK)
    await enter(database, now=NOW + LOCK)


async def test_lock_gets_longer_up_to_half_an_hour(database: Database) -> None:
    await add(database)
    locks = [seen for kind, seen in await refusals_of(database, Passwords(CHEAP), "ann") if kind is LockedOut]
    assert locks[:8] == [timedelta(seconds=each) for each in (30, 60, 120, 240, 480, 960, 1800, 1800)]


async def test_lock_outlives_the_process(database: Database, database_url: str) -> None:
    await add(database)
    await fail(database, times=5)
    async with Database(create_engine(database_url)) as restarted:
        with pytest.raises(LockedOut):
            await enter(restarted, passwords=Passwords(CHEAP))


async def test_unknown_user_gets_the_same_responses_as_a_known_one(database: Database) -> None:
    await add(database)
    await users.disable_user(database, (await add(database, "disabled")).id, by=BY, now=NOW)
    passwords = Passwords(CHEAP)
    seen = [await refusals_of(database, passwords, name) for name in ("ann", "nobody", "disabled")]
    assert seen[0] == seen[1] == seen[2]
    assert {kind for kind, _ in seen[0]} == {SignInRefused, LockedOut}


async def test_unknown_user_is_locked_ignoring_case(database: Database) -> None:
    passwords = Passwords(CHEAP)
    await fail(database, passwords, "nobody", times=5)
    with pytest.raises(LockedOut):
        await enter(database, "NoBody", passwords=passwords)
    await fail(database, passwords, "nobody2")


async def test_twenty_concurrent_wrong_passwords_all_count(database: Database) -> None:
    await add(database)
    passwords = PasswordsTogether(20)
    attempts = (enter(database, password=WRONG, passwords=passwords) for _ in range(20))
    refusals = await asyncio.gather(*attempts, return_exceptions=True)
    failures = await failures_of(database)
    assert (failures.count, failures.locked_until) == (20, NOW + LOCK)
    assert Counter(map(type, refusals)) == {SignInRefused: 5, LockedOut: 15}


async def test_twenty_concurrent_attempts_for_an_unknown_user_get_the_same_responses(
    database: Database,
) -> None:
    passwords = PasswordsTogether(20)
    attempts = (enter(database, "nobody", WRONG, passwords=passwords) for _ in range(20))
    refusals = await asyncio.gather(*attempts, return_exceptions=True)
    assert Counter(map(type, refusals)) == {SignInRefused: 5, LockedOut: 15}


async def test_right_password_is_refused_once_concurrent_attempts_have_locked_the_user(
    database: Database,
) -> None:
    """Otherwise a thousand concurrent guesses would all be checked."""
    await add(database)

    class LockedMeanwhile(Passwords):
        async def verify(self, password_hash: str | None, password: str) -> bool:
            await fail(database, times=5)
            return await super().verify(password_hash, password)

    with pytest.raises(LockedOut):
        await enter(database, passwords=LockedMeanwhile(CHEAP))


async def test_user_who_is_disabled_while_signing_in_is_refused(database: Database) -> None:
    ann = await add(database)

    class DisabledMeanwhile(Passwords):
        async def verify(self, password_hash: str | None, password: str) -> bool:
            await users.disable_user(database, ann.id, by=BY, now=NOW)
            return await super().verify(password_hash, password)

    with pytest.raises(SignInRefused):
        await enter(database, passwords=DisabledMeanwhile(CHEAP))


async def test_wrong_current_passwords_lock_too(database: Database) -> None:
    await add(database)
    caller = (await enter(database)).caller
    passwords = Passwords(CHEAP)
    for _ in range(5):
        with pytest.raises(WrongPassword):
            await change_password(database, passwords, caller, WRONG, "long enough", by=BY, now=NOW)
    with pytest.raises(LockedOut):
        await change_password(database, passwords, caller, PASSWORD, "long enough", by=BY, now=NOW)
    # Whoever has the session locks only that out.
    await enter(database)
