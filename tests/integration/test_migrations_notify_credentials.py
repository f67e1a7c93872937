"""The triggers notify listeners of ended credentials, but not of their use."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Delete, Update, delete, insert, update

from codehub.db.credentials import delete_ended_sessions
from codehub.db.models import ApiToken, Session, User
from codehub.db.session import Connection, Database, connect
from migrations import runner
from testkit.rows import NOW, add_user
from tests.integration.test_migrations_notify import Listener, listener

__all__ = ["listener"]

LATER = NOW + timedelta(days=1)
HASTY = runner.Patience(lock_timeout_seconds=0.05, attempts=3, pause_seconds=0.01)


@dataclass(frozen=True)
class Account:
    """An enabled user with one live session and one live token."""

    user_id: UUID
    session_id: UUID
    token_id: UUID


@pytest.fixture
async def account(database: Database) -> Account:
    """Return a user that existed before the listener."""
    session_id, token_id = uuid4(), uuid4()
    async with database.transaction() as session:
        user_id = await add_user(session)
        common = {"user_id": user_id, "expires_at": LATER}
        await session.execute(insert(Session).values(id=session_id, token_hash=b"one", **common))
        await session.execute(insert(ApiToken).values(id=token_id, token_hash=b"two", name="ci", **common))
    return Account(user_id, session_id, token_id)


async def execute(database: Database, *statements: Update | Delete) -> None:
    async with database.transaction() as session:
        for statement in statements:
            await session.execute(statement)


async def announced(database: Database, listener: Listener, account: Account) -> set[UUID]:
    """Return the announced ids; all came on one channel and with their owner."""
    notices = await listener.until_end(database)
    contents = [json.loads(payload) for _, payload in notices]
    assert {channel for channel, _ in notices} <= {"credentials"}
    assert {content.pop("owner_user_id") for content in contents} <= {str(account.user_id)}
    ids = [UUID(content.pop("id")) for content in contents]
    assert not any(contents)
    assert len(ids) == len(set(ids))
    return set(ids)


@pytest.mark.parametrize("statement", [update(Session).values(revoked_at=NOW), delete(Session)])
async def test_a_revoked_or_deleted_session_is_announced(
    account: Account, database: Database, listener: Listener, statement: Update | Delete
) -> None:
    await execute(database, statement)
    assert await announced(database, listener, account) == {account.session_id}


@pytest.mark.parametrize("statement", [update(ApiToken).values(revoked_at=NOW), delete(ApiToken)])
async def test_a_revoked_or_deleted_token_is_announced(
    account: Account, database: Database, listener: Listener, statement: Update | Delete
) -> None:
    await execute(database, statement)
    assert await announced(database, listener, account) == {account.token_id}


async def test_a_disabled_user_is_announced(account: Account, database: Database, listener: Listener) -> None:
    await execute(database, update(User).values(disabled_at=NOW))
    assert await announced(database, listener, account) == {account.user_id}


async def test_a_deleted_user_is_announced_with_the_credentials(
    account: Account, database: Database, listener: Listener
) -> None:
    await execute(database, delete(User))
    assert await announced(database, listener, account) == {
        account.user_id,
        account.session_id,
        account.token_id,
    }


@pytest.mark.parametrize(
    "statements",
    [
        (update(Session).values(last_seen_at=NOW), update(ApiToken).values(last_used_at=NOW)),
        (update(User).values(failed_login_count=3, locked_until=LATER),),
        (update(User).values(role="admin"),),
    ],
    ids=["use", "failed sign-in", "role"],
)
async def test_a_change_that_ends_no_credential_is_not_announced(
    account: Account, database: Database, listener: Listener, statements: Sequence[Update]
) -> None:
    await execute(database, *statements)
    assert await announced(database, listener, account) == set()


async def test_an_ended_credential_is_not_announced_again(
    account: Account, database: Database, listener: Listener
) -> None:
    ended = [update(table).values(revoked_at=NOW) for table in (Session, ApiToken)]
    await execute(database, *ended, update(User).values(disabled_at=NOW))
    assert await announced(database, listener, account) == {
        account.user_id,
        account.session_id,
        account.token_id,
    }
    again = [update(table).values(revoked_at=LATER) for table in (Session, ApiToken)]
    await execute(database, *again, update(User).values(disabled_at=None))
    async with database.transaction() as session:
        await delete_ended_sessions(session, account.user_id, NOW)
    assert await announced(database, listener, account) == set()


async def test_the_migration_does_not_wait_for_readers(empty_database_url: str) -> None:
    await runner.upgrade(empty_database_url, "0008_api")
    reader: Connection = await connect(empty_database_url)
    async with reader.transaction():
        # A reader holds this lock until its transaction ends; a conflicting lock would use up the attempts.
        for table in ("users", "sessions", "api_tokens"):
            await reader.fetch(f"SELECT * FROM {table}")  # noqa: S608
        change = await runner.upgrade(empty_database_url, "0009_credentials", HASTY)
    assert change.after == "0009_credentials"
    await reader.close()


async def test_a_downgrade_leaves_no_trigger_behind(empty_database_url: str) -> None:
    await runner.upgrade(empty_database_url)
    await runner.downgrade(empty_database_url, "0008_api")
    connection: Connection = await connect(empty_database_url)
    assert await connection.fetch("SELECT tgname FROM pg_trigger WHERE tgname LIKE 'credentials%'") == []
    assert await connection.fetch("SELECT proname FROM pg_proc WHERE proname = 'notify_credentials'") == []
    await connection.close()
