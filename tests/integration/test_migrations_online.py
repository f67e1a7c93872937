"""Migrating while CodeHub runs: nothing waits for long, and an interrupted migration continues."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from codehub.db.session import Connection, connect
from migrations import runner, steps
from migrations.errors import MigrationBlocked, MigrationInterrupted
from testkit.waiting import DEADLINE_SECONDS

HEAD = runner.find_revision("head")
MANY = 100_000
HASTY = runner.Patience(lock_timeout_seconds=0.05, attempts=3, pause_seconds=0.01)

FILL = """
INSERT INTO workspaces (
    id, owner_user_id, name, image_ref, instance_backend, storage_backend, home_store_key, status)
SELECT md5(number::text)::uuid, (SELECT id FROM users), 'home', 'image', 'local', 'local-dir', 'key',
    (ARRAY['CREATED', 'PROVISIONING', 'RUNNING', 'STOPPING', 'STOPPED', 'DELETING', 'ERROR', 'DELETED'])
        [1 + number % 8]
FROM generate_series(1, $1) AS number
"""


async def fill_m1(url: str, rows: int) -> None:
    await runner.upgrade(url, "0001_m1")
    connection = await connect(url)
    await connection.execute("INSERT INTO users VALUES (gen_random_uuid(), 'ann', '-')")
    await connection.execute(FILL, rows)
    await connection.close()


@pytest.fixture
async def other(empty_database_url: str) -> AsyncIterator[Connection]:
    """Yield a second connection."""
    connection = await connect(empty_database_url)
    yield connection
    await connection.close()


async def test_hundred_thousand_rows_are_never_rewritten_at_once(
    empty_database_url: str, other: Connection
) -> None:
    await fill_m1(empty_database_url, MANY)
    table_file = await other.fetchval("SELECT pg_relation_filenode('workspaces')")
    migration = asyncio.create_task(runner.upgrade(empty_database_url))
    # A statement that had to wait longer than this would fail the test.
    await other.execute("SET lock_timeout = '2s'")
    turns = 0
    while not migration.done():
        turns += 1
        await other.fetchval("SELECT name FROM workspaces WHERE id = md5($1)::uuid", str(turns))
        await other.execute("UPDATE workspaces SET memo = 'used' WHERE id = md5($1)::uuid", str(turns))
    assert (await migration).after == HEAD
    assert await other.fetchval("SELECT count(*) FROM workspaces WHERE phase IS NOT NULL") == MANY
    assert await other.fetchval("SELECT pg_relation_filenode('workspaces')") == table_file
    # Every row still has the id of the transaction that wrote it.
    largest = "SELECT max(rows) FROM (SELECT count(*) AS rows FROM workspaces GROUP BY xmin) AS transactions"
    assert await other.fetchval(largest) <= steps.BATCH_SIZE
    assert await other.fetchval("SELECT count(*) FROM workspaces WHERE memo = 'used'") == min(turns, MANY)


async def test_rows_are_converted_while_other_transactions_write(
    empty_database_url: str, other: Connection
) -> None:
    await fill_m1(empty_database_url, 10)
    await runner.upgrade(empty_database_url, "0002_expand")
    async with other.transaction():
        # Every writer holds this lock; a lock on the table would wait for it, and the attempts would run out.
        await other.execute("LOCK TABLE workspaces IN ROW EXCLUSIVE MODE")
        change = await runner.upgrade(empty_database_url, "0003_carry_over", HASTY)
    assert change.after == "0003_carry_over"


async def test_migration_gives_up_its_place_in_the_lock_queue(
    empty_database_url: str, other: Connection
) -> None:
    await fill_m1(empty_database_url, 10)
    writer = await connect(empty_database_url)
    patience = runner.Patience(lock_timeout_seconds=0.05, attempts=1000, pause_seconds=0.01)
    async with other.transaction():
        await other.fetch("SELECT * FROM workspaces")
        migration = asyncio.create_task(runner.upgrade(empty_database_url, patience=patience))
        await until(writer, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        # Queued behind the migration, while the reader still holds its lock.
        await writer.execute("UPDATE workspaces SET memo = 'written'")
        assert not migration.done()
    assert (await migration).after == HEAD
    await writer.close()


async def test_migration_that_is_blocked_for_too_long_changes_nothing(
    empty_database_url: str, other: Connection
) -> None:
    await fill_m1(empty_database_url, 10)
    async with other.transaction():
        await other.fetch("SELECT * FROM workspaces")
        with pytest.raises(MigrationBlocked, match="3 attempts"):
            await runner.upgrade(empty_database_url, patience=HASTY)
    assert await runner.current(empty_database_url) == "0001_m1"
    assert (await runner.upgrade(empty_database_url)).after == HEAD


async def test_migration_that_was_killed_continues_where_it_stopped(
    empty_database_url: str,
    other: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steps, "BATCH_SIZE", 10)
    await fill_m1(empty_database_url, 25)
    await runner.upgrade(empty_database_url, "0002_expand")
    watcher = await connect(empty_database_url)
    async with other.transaction():
        await other.execute("SELECT FROM workspaces ORDER BY id DESC LIMIT 1 FOR UPDATE")
        patience = runner.Patience(lock_timeout_seconds=60)
        migration = asyncio.create_task(runner.upgrade(empty_database_url, patience=patience))
        waiting = (
            "FROM pg_stat_activity WHERE application_name = 'codehub migrate' AND wait_event_type = 'Lock'"
        )
        await until(watcher, f"SELECT EXISTS (SELECT {waiting})")
        await watcher.execute(f"SELECT pg_terminate_backend(pid) {waiting}")
        with pytest.raises(MigrationInterrupted, match="run the migration again"):
            await migration
        assert await watcher.fetchval("SELECT count(*) FROM workspaces WHERE phase IS NOT NULL") == 20
    assert (await runner.upgrade(empty_database_url)).after == HEAD
    assert await watcher.fetchval("SELECT count(*) FROM workspaces WHERE phase IS NOT NULL") == 25
    await watcher.close()


async def test_index_whose_build_was_interrupted_is_built_again(
    empty_database_url: str, other: Connection
) -> None:
    await fill_m1(empty_database_url, 10)
    await runner.upgrade(empty_database_url, "0004_constraints")
    await other.execute("CREATE INDEX ix_workspaces_error ON workspaces (phase_changed_at)")
    await other.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ix_workspaces_error'::regclass"
    )
    await runner.upgrade(empty_database_url)
    definition = await other.fetchval(
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index "
        "WHERE indexrelid = 'ix_workspaces_error'::regclass AND indisvalid"
    )
    assert "'ERROR'" in definition


async def test_of_concurrent_migrators_one_works_and_the_others_find_it_done(empty_database_url: str) -> None:
    await fill_m1(empty_database_url, 1000)
    changes = await asyncio.gather(*(runner.upgrade(empty_database_url) for _ in range(4)))
    assert sorted(change.before or "" for change in changes) == ["0001_m1", HEAD, HEAD, HEAD]
    assert {change.after for change in changes} == {HEAD}


async def test_migrator_gives_up_if_another_one_never_ends(
    empty_database_url: str, other: Connection
) -> None:
    await other.execute("SELECT pg_advisory_lock($1)", runner.MIGRATION_LOCK)
    with pytest.raises(MigrationBlocked, match="Another migration"):
        await runner.upgrade(empty_database_url, patience=runner.Patience(other_migrator_seconds=0.01))


async def until(connection: Connection, question: str) -> None:
    """Repeat the query until it returns true."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not await connection.fetchval(question):
            pass
