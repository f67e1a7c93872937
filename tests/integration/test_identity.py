"""Signing in does not reveal which users exist, and a session ends when it should."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from argon2 import PasswordHasher
from sqlalchemy import event, select, update

from codehub.db.models import Session, User
from codehub.db.session import Database
from codehub.services import users
from codehub.services.credentials import list_sessions, revoke_session
from codehub.services.errors import CredentialNotFound, InvalidPassword, SignInRefused, WrongPassword
from codehub.services.identity import (
    Caller,
    Credential,
    SessionTimes,
    SignInClient,
    change_password,
    find_session,
    sign_in,
    sign_out,
)
from codehub.services.passwords import Passwords
from testkit.rows import BY, NOW, add_user
from tests.identities import (
    CHEAP,
    LIFETIME,
    PASSWORD,
    WRONG,
    CountingHasher,
    add,
    enter,
    failures_of,
)

SECOND = timedelta(seconds=1)
NEW = "another battery"


async def seen_at(database: Database) -> object:
    async with database.transaction() as session:
        return (await session.scalars(select(Session.last_seen_at))).one()


async def hash_of(database: Database) -> str:
    async with database.transaction() as session:
        return (await session.scalars(select(User.password_hash))).one()


async def test_session_identifies_its_user(database: Database) -> None:
    ann = await add(database, role="admin")
    signed_in = await enter(database, "ANN")
    assert signed_in.caller == Caller(
        user_id=ann.id,
        username="ann",
        role="admin",
        credential=Credential.SESSION,
        credential_id=signed_in.caller.credential_id,
        expires_at=NOW + LIFETIME,
        confirmed_at=NOW,
    )
    assert signed_in.caller.is_admin
    assert await find_session(database, signed_in.token, now=NOW) == signed_in.caller


async def test_token_of_a_session_is_long_and_not_in_its_repr(database: Database) -> None:
    await add(database)
    signed_in = await enter(database)
    assert len(signed_in.token) == 43
    assert signed_in.token not in repr(signed_in)


async def test_session_ends_when_it_expires(database: Database) -> None:
    await add(database)
    token = (await enter(database)).token
    assert await find_session(database, token, now=NOW + LIFETIME - SECOND) is not None
    assert await find_session(database, token, now=NOW + LIFETIME) is None


async def test_session_ends_when_its_user_signs_out(database: Database) -> None:
    await add(database)
    ended, other = await enter(database), await enter(database)
    for _ in range(2):
        await sign_out(database, ended.caller.credential_id, by=BY, now=NOW)
    assert await find_session(database, ended.token, now=NOW) is None
    assert await find_session(database, other.token, now=NOW) is not None


async def test_session_ends_when_its_user_is_disabled_directly_in_the_database(database: Database) -> None:
    await add(database)
    token = (await enter(database)).token
    async with database.transaction() as session:
        await session.execute(update(User).values(disabled_at=NOW))
    assert await find_session(database, token, now=NOW) is None


@pytest.mark.parametrize("token", ["", "x" * 43, "\0", "\udcff", "x" * 100_000])
async def test_unknown_token_identifies_no_user(database: Database, token: str) -> None:
    assert await find_session(database, token, now=NOW) is None


async def test_finding_a_session_takes_one_statement(database: Database) -> None:
    await add(database)
    token = (await enter(database)).token
    statements: list[str] = []

    @event.listens_for(database.engine.sync_engine, "before_cursor_execute")
    def note(_connection: object, _cursor: object, statement: str, *_arguments: object) -> None:
        statements.append(statement)

    await find_session(database, token, now=NOW)
    assert len(statements) == 1


async def test_use_is_written_at_most_once_a_minute(database: Database) -> None:
    await add(database)
    token = (await enter(database)).token
    minute = timedelta(minutes=1)
    await find_session(database, token, now=NOW + minute - SECOND)
    assert await seen_at(database) == NOW
    await find_session(database, token, now=NOW + minute)
    assert await seen_at(database) == NOW + minute


@pytest.mark.parametrize(
    ("username", "password"),
    [
        ("ann", WRONG),
        ("nobody", WRONG),
        ("ann", ""),
        ("disabled", PASSWORD),
        ("a\0b", WRONG),
        ("\udcff", "\udcff"),
    ],
)
async def test_every_refusal_is_the_same_and_takes_the_same_work(
    database: Database, username: str, password: str
) -> None:
    await add(database)
    await users.disable_user(database, (await add(database, "disabled")).id, by=BY, now=NOW)
    hasher = CountingHasher()
    with pytest.raises(SignInRefused) as refusal:
        await enter(database, username, password, passwords=Passwords(hasher))
    assert str(refusal.value) == str(SignInRefused())
    assert hasher.verified == ["$argon2id$v=19$m=8,t=1,p=1"]


async def test_user_with_an_unknown_kind_of_hash_is_refused_after_the_same_work(database: Database) -> None:
    async with database.transaction() as session:
        await add_user(session, "ann")
    hasher = CountingHasher()
    with pytest.raises(SignInRefused):
        await enter(database, passwords=Passwords(hasher))
    assert hasher.verified[-1] == "$argon2id$v=19$m=8,t=1,p=1"


async def test_no_password_matches_the_dummy_hash() -> None:
    passwords = Passwords(CHEAP)
    assert not await passwords.verify(None, "")
    assert passwords._dummy_hash.count("$") == CHEAP.hash("x").count("$")
    assert len(passwords._dummy_hash) == len(CHEAP.hash("x"))
    assert not passwords.is_outdated(passwords._dummy_hash)


async def test_composed_and_decomposed_letters_are_the_same_password() -> None:
    passwords = Passwords(CHEAP)
    assert await passwords.verify(await passwords.hash("caf\u00e9 cafe"), "cafe\u0301 cafe")


async def test_concurrent_hashing_is_limited() -> None:
    passwords = Passwords(max_concurrent=2)
    await asyncio.gather(*(passwords.hash(PASSWORD) for _ in range(6)))
    assert len(passwords._threads._threads) == 2


async def test_hash_is_renewed_when_the_parameters_have_changed(database: Database) -> None:
    await add(database)
    old = await hash_of(database)
    await enter(database)
    assert await hash_of(database) == old
    stronger = Passwords(PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
    # Concurrently: a sign-in is not refused because another one renewed the hash.
    await asyncio.gather(*(enter(database, passwords=stronger) for _ in range(10)))
    assert "$m=16,t=2,p=1$" in await hash_of(database)
    await enter(database, passwords=stronger)


async def test_sign_in_with_a_password_that_changes_meanwhile_is_refused(database: Database) -> None:
    await add(database)

    class ChangedMeanwhile(Passwords):
        async def verify(self, password_hash: str | None, password: str) -> bool:
            matches = await super().verify(password_hash, password)
            if matches:
                await users.set_password(database, Passwords(CHEAP), "ann", NEW, by=BY, now=NOW)
            return matches

    with pytest.raises(SignInRefused):
        await enter(database, passwords=ChangedMeanwhile(CHEAP))
    assert (await failures_of(database)).count == 1


async def test_renewed_hash_does_not_undo_a_password_change(database: Database) -> None:
    await add(database)

    class ChangedBeforeRenewal(Passwords):
        async def hash(self, password: str) -> str:
            await users.set_password(database, Passwords(CHEAP), "ann", NEW, by=BY, now=NOW)
            return await super().hash(password)

    stronger = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1)
    await enter(database, passwords=ChangedBeforeRenewal(stronger))
    await enter(database, password=NEW)


async def test_changing_the_password_ends_every_other_session(database: Database) -> None:
    ann = await add(database)
    await add(database, "bob")
    here, there, bob = await enter(database), await enter(database), await enter(database, "bob")
    await change_password(database, Passwords(CHEAP), here.caller, PASSWORD, NEW, by=BY, now=NOW)
    assert await find_session(database, here.token, now=NOW) == here.caller
    assert await find_session(database, there.token, now=NOW) is None
    assert await find_session(database, bob.token, now=NOW) is not None
    assert [view.id for view in await list_sessions(database, ann.id, now=NOW)] == [here.caller.credential_id]
    with pytest.raises(SignInRefused):
        await enter(database)
    await enter(database, password=NEW)


async def test_changing_the_password_with_a_token_ends_every_session(database: Database) -> None:
    await add(database)
    signed_in = await enter(database)
    by_token = replace(signed_in.caller, credential=Credential.TOKEN, credential_id=uuid4())
    await change_password(database, Passwords(CHEAP), by_token, PASSWORD, NEW, by=BY, now=NOW)
    assert await find_session(database, signed_in.token, now=NOW) is None


async def test_wrong_current_password_changes_nothing(database: Database) -> None:
    await add(database)
    here, there = await enter(database), await enter(database)
    before = await hash_of(database)
    with pytest.raises(WrongPassword):
        await change_password(database, Passwords(CHEAP), here.caller, WRONG, NEW, by=BY, now=NOW)
    assert await hash_of(database) == before
    assert await find_session(database, there.token, now=NOW) is not None


@pytest.mark.parametrize("password", ["", "1234567", "x" * 1025])
async def test_new_password_must_follow_the_rules(database: Database, password: str) -> None:
    await add(database)
    caller = (await enter(database)).caller
    with pytest.raises(InvalidPassword, match="8 to 1024 characters"):
        await change_password(database, Passwords(CHEAP), caller, PASSWORD, password, by=BY, now=NOW)


async def test_sessions_are_listed_and_revoked_by_their_owner_only(database: Database) -> None:
    ann, bob = await add(database), await add(database, "bob")
    signed_in = await enter(database)
    session_id = signed_in.caller.credential_id
    (view,) = await list_sessions(database, ann.id, now=NOW)
    assert (view.id, view.created_at, view.expires_at) == (session_id, NOW, NOW + LIFETIME)
    assert (view.last_seen_at, view.user_agent) == (NOW, "Firefox")
    assert await list_sessions(database, bob.id, now=NOW) == []
    with pytest.raises(CredentialNotFound):
        await revoke_session(database, bob.id, session_id, by=BY, now=NOW)
    assert await find_session(database, signed_in.token, now=NOW) is not None
    await revoke_session(database, ann.id, session_id, by=BY, now=NOW)
    assert await find_session(database, signed_in.token, now=NOW) is None
    assert await list_sessions(database, ann.id, now=NOW) == []
    with pytest.raises(CredentialNotFound):
        await revoke_session(database, ann.id, session_id, by=BY, now=NOW)


async def test_signing_in_removes_ended_sessions(database: Database) -> None:
    ann = await add(database)
    await enter(database, lifetime=SECOND)
    await sign_out(database, (await enter(database)).caller.credential_id, by=BY, now=NOW)
    kept = await enter(database)
    latest = await enter(database, now=NOW + SECOND)
    async with database.transaction() as session:
        rows = set(await session.scalars(select(Session.id)))
    assert rows == {kept.caller.credential_id, latest.caller.credential_id}
    assert len(await list_sessions(database, ann.id, now=NOW + SECOND)) == 2


async def test_long_user_agent_is_truncated(database: Database) -> None:
    ann = await add(database)
    await sign_in(
        database,
        Passwords(CHEAP),
        "ann",
        PASSWORD,
        times=SessionTimes(LIFETIME),
        client=SignInClient(user_agent="\0" + "x" * 10_000),
        now=NOW,
    )
    (view,) = await list_sessions(database, ann.id, now=NOW)
    assert view.user_agent == "x" * 512


async def test_a_session_ends_when_nobody_uses_it(database: Database) -> None:
    ann = await add(database)
    times = SessionTimes(LIFETIME, timedelta(minutes=30))
    signed_in = await sign_in(
        database, Passwords(CHEAP), "ann", PASSWORD, times=times, client=SignInClient(), now=NOW
    )
    used = NOW + timedelta(minutes=29)
    assert await find_session(database, signed_in.token, now=used) is not None
    assert await find_session(database, signed_in.token, now=used + timedelta(minutes=29)) is not None
    idle = used + timedelta(minutes=29 + 31)
    assert await list_sessions(database, ann.id, now=idle) == []
    assert await find_session(database, signed_in.token, now=idle) is None
