"""Managing users: names are unique, and there is always an administrator."""

import asyncio
from collections import Counter
from uuid import uuid4

import pytest

from codehub.db.session import Database
from codehub.services import users
from codehub.services.credentials import create_token, list_tokens
from codehub.services.errors import (
    InvalidPassword,
    InvalidUsername,
    LastAdmin,
    SignInRefused,
    SingleAccountOnly,
    UsernameTaken,
    UserNotFound,
)
from codehub.services.identity import SignInClient, find_session, find_token
from codehub.services.passwords import Passwords
from codehub.services.users import UserChange, UserView, ensure_admin
from testkit.rows import BY, NOW
from tests.identities import CHEAP, PASSWORD, WRONG, add, enter, failures_of

NEW = "another battery"


async def names(database: Database, after: str | None = None, limit: int = 100) -> list[str]:
    return [view.username for view in await users.list_users(database, after=after, limit=limit)]


async def active_admins(database: Database) -> int:
    everyone = await users.list_users(database, after=None, limit=100)
    return sum(view.role == "admin" and view.disabled_at is None for view in everyone)


async def test_new_user_can_sign_in(database: Database) -> None:
    added = await add(database, "Ann.B_c-d@example.org")
    assert added == UserView(added.id, "Ann.B_c-d@example.org", "user", NOW, None, None)
    assert await users.load_user(database, added.id) == added
    assert await users.find_user(database, "ann.b_c-D@EXAMPLE.org") == added
    assert (await enter(database, "ann.b_c-d@example.org")).caller.user_id == added.id


async def test_name_is_taken_ignoring_case(database: Database) -> None:
    results = await asyncio.gather(
        *(add(database, name) for name in ("ann", "Ann", "ANN")), return_exceptions=True
    )
    assert Counter(map(type, results)) == {UserView: 1, UsernameTaken: 2}


@pytest.mark.parametrize("name", ["", "x" * 65, ".ann", "-ann", "@ann", "an n", "ann\n", "änn", "a\0", "a/b"])
async def test_name_must_follow_the_rules(database: Database, name: str) -> None:
    with pytest.raises(InvalidUsername, match="starting with a letter or a digit"):
        await add(database, name)


@pytest.mark.parametrize("name", ["a", "1", "x" * 64])
async def test_shortest_and_longest_names_are_allowed(database: Database, name: str) -> None:
    await add(database, name)


@pytest.mark.parametrize("password", ["1234567", "x" * 1025])
async def test_password_must_follow_the_rules(database: Database, password: str) -> None:
    with pytest.raises(InvalidPassword):
        await users.add_user(database, Passwords(CHEAP), "ann", password, single=False, by=BY, now=NOW)
    await add(database)
    with pytest.raises(InvalidPassword):
        await users.set_password(database, Passwords(CHEAP), "ann", password, by=BY, now=NOW)


async def test_without_a_sandbox_there_is_only_one_account(database: Database) -> None:
    async def add_single(name: str) -> None:
        await users.add_user(database, Passwords(CHEAP), name, PASSWORD, single=True, by=BY, now=NOW)

    await add_single("ann")
    await users.require_single_account(database)
    with pytest.raises(SingleAccountOnly, match="CODEHUB_LOCAL_UNSAFE_NO_SANDBOX"):
        await add_single("bob")
    # With others from before, `codehub up` does not start.
    await add(database, "bob")
    with pytest.raises(SingleAccountOnly):
        await users.require_single_account(database)


async def test_users_are_listed_by_name_in_pages(database: Database) -> None:
    for name in ("bob", "Cid", "ann", "Dan"):
        await add(database, name)
    assert await names(database) == ["ann", "bob", "Cid", "Dan"]
    assert await names(database, limit=2) == ["ann", "bob"]
    assert await names(database, after="BOB", limit=2) == ["Cid", "Dan"]
    assert await names(database, after="Dan") == []


@pytest.mark.parametrize("by_name", [True, False])
async def test_setting_a_password_ends_sessions_and_lock(database: Database, by_name: bool) -> None:
    ann = await add(database)
    signed_in = await enter(database)
    for number in range(20):
        with pytest.raises(SignInRefused):
            await enter(database, password=WRONG, client=SignInClient(f"198.51.100.{number}"))
    assert (await users.load_user(database, ann.id)).locked_until is not None
    changed = await users.set_password(
        database, Passwords(CHEAP), "ANN" if by_name else ann.id, NEW, by=BY, now=NOW
    )
    assert changed.locked_until is None
    assert await find_session(database, signed_in.token, now=NOW) is None
    assert (await failures_of(database)).count == 0
    await enter(database, password=NEW)


async def test_disabling_ends_all_sessions_and_tokens_permanently(database: Database) -> None:
    ann = await add(database)
    signed_in = await enter(database)
    created = await create_token(database, ann.id, "ci", expires_at=None, by=BY, now=NOW)
    assert (await users.disable_user(database, ann.id, by=BY, now=NOW)).disabled_at == NOW
    with pytest.raises(SignInRefused):
        await enter(database)
    assert (await users.enable_user(database, ann.id, by=BY, now=NOW)).disabled_at is None
    assert await find_session(database, signed_in.token, now=NOW) is None
    assert await find_token(database, created.token, now=NOW) is None
    assert await list_tokens(database, ann.id) == []
    await enter(database)


async def test_new_role_applies_at_once(database: Database) -> None:
    ann = await add(database)
    token = (await enter(database)).token
    await users.change_user(database, ann.id, UserChange(role="admin"), by=BY, now=NOW)
    caller = await find_session(database, token, now=NOW)
    assert caller is not None
    assert caller.is_admin


async def test_last_administrator_cannot_be_removed(database: Database) -> None:
    first, second = await add(database, "first", "admin"), await add(database, "second", "admin")
    await users.disable_user(database, second.id, by=BY, now=NOW)
    with pytest.raises(LastAdmin):
        await users.disable_user(database, first.id, by=BY, now=NOW)
    with pytest.raises(LastAdmin):
        await users.change_user(database, first.id, UserChange(role="user"), by=BY, now=NOW)
    # A disabled administrator does not count.
    await users.disable_user(database, second.id, by=BY, now=NOW)
    await users.change_user(database, second.id, UserChange(role="user"), by=BY, now=NOW)
    await users.change_user(database, first.id, UserChange(role="admin"), by=BY, now=NOW)


async def test_concurrent_changes_leave_one_administrator(database: Database) -> None:
    admins = [await add(database, f"admin{number}", "admin") for number in range(10)]
    disabled = (users.disable_user(database, admin.id, by=BY, now=NOW) for admin in admins[:5])
    demoted = (
        users.change_user(database, admin.id, UserChange(role="user"), by=BY, now=NOW) for admin in admins[5:]
    )
    results = await asyncio.gather(*disabled, *demoted, return_exceptions=True)
    assert Counter(map(type, results)) == {UserView: 9, LastAdmin: 1}
    assert await active_admins(database) == 1


async def test_unknown_user_is_reported(database: Database) -> None:
    passwords = Passwords(CHEAP)
    for attempt in (
        users.load_user(database, uuid4()),
        users.find_user(database, "nobody"),
        users.disable_user(database, uuid4(), by=BY, now=NOW),
        users.enable_user(database, uuid4(), by=BY, now=NOW),
        users.change_user(database, uuid4(), UserChange(role="admin"), by=BY, now=NOW),
        users.set_password(database, passwords, "nobody", PASSWORD, by=BY, now=NOW),
        users.set_password(database, passwords, uuid4(), PASSWORD, by=BY, now=NOW),
    ):
        with pytest.raises(UserNotFound):
            await attempt


async def test_first_administrator_is_created_once_and_can_sign_in(database: Database) -> None:
    async with database.transaction() as session:
        password = await ensure_admin(session)
    assert password is not None
    assert (await enter(database, "admin", password, passwords=Passwords())).caller.is_admin
    async with database.transaction() as session:
        assert await ensure_admin(session) is None


async def test_change_that_is_refused_in_part_is_not_made_at_all(database: Database) -> None:
    ann = await add(database, "ann")
    # The only administrator, who must not be disabled.
    with pytest.raises(LastAdmin):
        await users.change_user(database, ann.id, UserChange(role="admin", disabled=True), by=BY, now=NOW)
    assert await users.load_user(database, ann.id) == ann
