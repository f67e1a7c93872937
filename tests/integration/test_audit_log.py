"""The audit log: entries are added in the transaction of the change, and never changed or removed early."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from codehub.db.audit_log import EntryFilter, EntryView, list_entries
from codehub.db.retention import remove_audit_log
from codehub.db.session import Database
from codehub.domain.lockout import FAILURES_BEFORE_LOCK
from codehub.services import users
from codehub.services.audit import UNKNOWN, Action, Actor, Outcome, record
from codehub.services.credentials import create_token, revoke_token
from codehub.services.errors import LastAdmin, SignInRefused
from codehub.services.users import UserChange
from testkit.rows import BY, NOW
from tests.identities import PASSWORD, WRONG, add, enter

ADA = Actor("ada", address="192.0.2.7")
DAY = timedelta(days=1)


async def entries(database: Database, **wanted: Any) -> list[EntryView]:  # noqa: ANN401
    async with database.transaction() as session:
        return await list_entries(session, EntryFilter(**wanted), before=None, limit=100)


async def actions(database: Database, **wanted: Any) -> list[str]:  # noqa: ANN401
    return [each.action for each in reversed(await entries(database, **wanted))]


async def add_entry(database: Database, at: datetime, by: Actor = ADA, **about: Any) -> None:  # noqa: ANN401
    async with database.transaction() as session:
        await record(session, Action.SIGN_IN, at, by=by, **about)


async def test_a_sign_in_and_a_failure_are_recorded_with_the_address(database: Database) -> None:
    ann = await add(database)
    await enter(database)
    with pytest.raises(SignInRefused):
        await enter(database, password=WRONG)
    failed, done = (await entries(database, action=Action.SIGN_IN))[:2]
    assert (done.actor, done.actor_id, done.address, done.outcome) == ("ann", ann.id, "192.0.2.1", "success")
    assert (failed.actor, failed.target, failed.outcome) == (UNKNOWN, "ann", "failure")


async def test_what_a_stranger_typed_as_a_name_is_not_recorded(database: Database) -> None:
    with pytest.raises(SignInRefused):
        await enter(database, username="hunter2-secret")
    [entry] = await entries(database)
    assert (entry.actor, entry.target, entry.outcome) == (UNKNOWN, None, "failure")
    assert await entries(database, text="hunter2") == []


async def test_a_lockout_is_recorded(database: Database) -> None:
    await add(database)
    for _ in range(FAILURES_BEFORE_LOCK):
        with pytest.raises(SignInRefused):
            await enter(database, password=WRONG)
    [entry] = await entries(database, action=Action.LOCKOUT)
    assert entry.target == "ann"


async def test_changes_of_accounts_and_tokens_are_recorded_without_secrets(database: Database) -> None:
    ann = await add(database, role="admin")
    await add(database, "bob", role="admin")
    created = await create_token(database, ann.id, "laptop", expires_at=None, by=BY, now=NOW)
    await revoke_token(database, ann.id, created.view.id, by=BY, now=NOW)
    await users.change_user(database, ann.id, UserChange("user", True, "a hash"), by=BY, now=NOW)
    await users.enable_user(database, ann.id, by=BY, now=NOW)
    assert await actions(database) == [
        "user_add", "user_add", "token_create", "token_revoke",
        "user_role", "user_disable", "user_password", "user_enable",
    ]  # fmt: skip
    everything = str(await entries(database))
    assert not any(secret in everything for secret in (PASSWORD, "a hash", created.token))


async def test_a_refused_change_leaves_no_entry(database: Database) -> None:
    ann = await add(database, role="admin")
    with pytest.raises(LastAdmin):
        await users.disable_user(database, ann.id, by=BY, now=NOW)
    assert await actions(database) == ["user_add"]


@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit_log SET actor = 'nobody'", "DELETE FROM audit_log", "TRUNCATE audit_log"],
)
async def test_an_entry_cannot_be_changed_or_removed(database: Database, statement: str) -> None:
    await add_entry(database, datetime.now(UTC) - DAY * 400)
    with pytest.raises(DBAPIError, match="append-only"):
        async with database.transaction() as session:
            await session.execute(text(statement))
    assert len(await entries(database)) == 1


async def test_retention_removes_only_old_entries(database: Database) -> None:
    now = datetime.now(UTC)
    for age in (DAY * 3, DAY * 2, timedelta(hours=1)):
        await add_entry(database, now - age)
    async with database.transaction() as session:
        assert await remove_audit_log(session, now - DAY * 2.5, 10) == 1
    # Entries of the last day stay, whatever the setting says.
    async with database.transaction() as session:
        assert await remove_audit_log(session, now + DAY, 10) == 1
    assert len(await entries(database)) == 1


async def test_the_permission_to_remove_ends_with_the_function(database: Database) -> None:
    await add_entry(database, datetime.now(UTC) - DAY * 2)
    async with database.transaction() as session:
        await remove_audit_log(session, NOW, 0)
        with pytest.raises(DBAPIError, match="append-only"):
            await session.execute(text("DELETE FROM audit_log"))


async def test_filters(database: Database) -> None:
    await add_entry(database, NOW - DAY, detail={"note": "100%"})
    await add_entry(database, NOW, by=Actor("Bob", address="198.51.100.9"), outcome=Outcome.FAILURE)
    assert len(await entries(database, actor="BOB")) == 1
    assert len(await entries(database, text="0%")) == 1
    assert len(await entries(database, text="_")) == 0
    assert len(await entries(database, text="198.51")) == 1
    assert len(await entries(database, outcome="failure")) == 1
    assert len(await entries(database, since=NOW)) == 1
    assert len(await entries(database, until=NOW)) == 1
    assert await entries(database, action="user_add") == []
