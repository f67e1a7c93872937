"""A database of M1 is stamped and converted; one that only looks like it is left alone."""

from typing import Any

import pytest

from codehub.db.session import Database, connect, create_engine
from codehub.db.snapshots import load_snapshot
from codehub.domain.states import DesiredState, Phase
from migrations import runner
from migrations.errors import MigrationRefused
from tests.integration.test_migrations_schema import CATALOGUES, read_catalog
from tests.m1.leftovers import IDS, STATUSES, fill_database

ALEMBIC = "CREATE TABLE alembic_version (version_num character varying(32) PRIMARY KEY)"
ITS_OWN_REVISION = (ALEMBIC, "INSERT INTO alembic_version VALUES ('3f8a0c1d2e4b')")

CARRIED_OVER = {
    "CREATED": (Phase.PENDING, DesiredState.RUNNING),
    "PROVISIONING": (Phase.STANDBY, DesiredState.RUNNING),
    "RUNNING": (Phase.RUNNING, DesiredState.RUNNING),
    "STOPPING": (Phase.RUNNING, DesiredState.STANDBY),
    "STOPPED": (Phase.STANDBY, DesiredState.STANDBY),
    "DELETING": (Phase.DELETING, DesiredState.DELETED),
    "ERROR": (Phase.ERROR, DesiredState.STANDBY),
    "DELETED": (Phase.DELETED, DesiredState.DELETED),
}

# Variants of M1's schema.
VARIANTS = {
    "as it is": (),
    "an empty table of revisions": (ALEMBIC,),
    "a revision of its own": ITS_OWN_REVISION,
    "no home_ctx": ("ALTER TABLE workspaces DROP home_ctx",),
    "no memo and no description": ("ALTER TABLE workspaces DROP memo, DROP description",),
    "no sessions": ("DROP TABLE sessions",),
    "sessions with other tokens": (
        "DROP TABLE sessions",
        "CREATE TABLE sessions (token text PRIMARY KEY, user_id uuid REFERENCES users (id))",
    ),
    "status as an enum": (
        f"CREATE TYPE workspace_status AS ENUM {STATUSES}",
        "ALTER TABLE workspaces ALTER status TYPE workspace_status USING status::workspace_status",
        "ALTER TABLE workspaces ALTER status SET DEFAULT 'CREATED'",
    ),
    "times without a zone": (
        "ALTER TABLE workspaces ALTER created_at TYPE timestamp, ALTER updated_at TYPE timestamp",
        "ALTER TABLE workspaces ALTER deleted_at TYPE timestamp",
    ),
    "ids as text": (
        "ALTER TABLE sessions DROP CONSTRAINT sessions_user_id_fkey",
        "ALTER TABLE workspaces DROP CONSTRAINT workspaces_owner_user_id_fkey",
        "ALTER TABLE users ALTER id TYPE varchar(36)",
        "ALTER TABLE sessions ALTER user_id TYPE varchar(36), ALTER id TYPE varchar(36)",
        "ALTER TABLE workspaces ALTER owner_user_id TYPE varchar(36), ALTER id TYPE varchar(36)",
        "ALTER TABLE workspaces ADD FOREIGN KEY (owner_user_id) REFERENCES users (id)",
    ),
    "extra columns": (
        "ALTER TABLE users ADD email text NOT NULL DEFAULT 'x'",
        "ALTER TABLE users ALTER email DROP DEFAULT",
        "ALTER TABLE workspaces ADD port integer, ADD CHECK (instance_backend = 'local-docker')",
    ),
    "columns with names of later revisions": (
        "ALTER TABLE workspaces ADD version text NOT NULL DEFAULT 'one', ADD archive_key integer",
        "ALTER TABLE users ADD role integer",
    ),
    "unique names": ("CREATE UNIQUE INDEX one_name ON workspaces (owner_user_id, name)",),
    "its checks": ("ALTER TABLE workspaces ADD CHECK (status <> '')",),
}


@pytest.mark.parametrize("variant", VARIANTS)
async def test_a_database_of_m1_is_stamped_and_converted(
    empty_database_url: str, database_url: str, variant: str
) -> None:
    await fill_database(empty_database_url, *VARIANTS[variant])
    change = await runner.upgrade(empty_database_url)
    assert change == runner.Change("M1", runner.revisions()[-1])
    await assert_every_row_is_converted(empty_database_url)
    await assert_the_schema_is_that_of_the_models(empty_database_url, database_url)


async def assert_every_row_is_converted(url: str) -> None:
    async with Database(create_engine(url)) as database, database.transaction() as session:
        for status, expected in CARRIED_OVER.items():
            snapshot = await load_snapshot(session, IDS[status])
            assert snapshot is not None
            assert (snapshot.phase, snapshot.desired_state) == expected, status


async def assert_the_schema_is_that_of_the_models(url: str, reference_url: str) -> None:
    """Allow extra columns and indexes, but no extra constraint."""
    for catalogue, query in CATALOGUES.items():
        expected, found = await read_catalog(reference_url, query), await read_catalog(url, query)
        assert {name: found.get(name) for name in expected} == expected
        if catalogue == "constraints":
            assert found.keys() == expected.keys()


async def test_home_ctx_stays_as_m1_wrote_it(empty_database_url: str) -> None:
    await fill_database(empty_database_url)
    await runner.upgrade(empty_database_url)
    rows = await fetch(empty_database_url, "SELECT name, home_ctx FROM workspaces")
    kept = {row["name"]: row["home_ctx"] for row in rows}
    assert kept["running"] == '{"mount": "bind"}'
    # Now it is an object: any other value is kept inside of one.
    assert kept["deleting"] == '{"m1": ["list"]}'
    assert (kept["created"], kept["stopped"]) == ("{}", "{}")


async def test_a_new_user_can_be_added_after_the_upgrade(empty_database_url: str) -> None:
    await fill_database(empty_database_url, *VARIANTS["extra columns"])
    await runner.upgrade(empty_database_url)
    await fetch(
        empty_database_url,
        "INSERT INTO users (id, username, password_hash) VALUES ($1, 'eve', '-')",
        IDS["CREATED"],
    )
    rows = await fetch(empty_database_url, "SELECT username, email FROM users ORDER BY username")
    assert [(row["username"], row["email"]) for row in rows] == [("ann", "x"), ("bob", "x"), ("eve", None)]


async def test_a_downgrade_restores_the_rows_of_m1(empty_database_url: str) -> None:
    query = (
        "SELECT id, owner_user_id, name, memo, status, image_ref, instance_backend, storage_backend, "
        "home_store_key, created_at, updated_at FROM workspaces ORDER BY id"
    )
    await fill_database(empty_database_url)
    before = await fetch(empty_database_url, query)
    await runner.upgrade(empty_database_url)
    assert await runner.downgrade(empty_database_url, "0001_m1") == runner.Change(
        runner.revisions()[-1], "0001_m1"
    )
    assert await fetch(empty_database_url, query) == before
    [row] = await fetch(empty_database_url, "SELECT home_ctx FROM workspaces WHERE name = 'running'")
    assert row["home_ctx"] == '{"mount": "bind"}'
    assert await fetch(empty_database_url, "SELECT locked_until, failed_login_attempts FROM users")
    assert await runner.upgrade(empty_database_url) == runner.Change("0001_m1", runner.revisions()[-1])
    await assert_every_row_is_converted(empty_database_url)


REFUSED = {
    "a status that M1 did not have": (
        ("UPDATE workspaces SET status = 'PAUSED' WHERE status = 'RUNNING'",),
        "PAUSED",
    ),
    "a missing column": (("ALTER TABLE workspaces DROP home_store_key",), "workspaces.home_store_key"),
    "a column of another type": (
        ("ALTER TABLE users ALTER password_hash TYPE bytea USING ''::bytea",),
        "users.password_hash",
    ),
    "ids that are no UUIDs": (
        (*VARIANTS["ids as text"], "UPDATE workspaces SET id = 'one' WHERE status = 'RUNNING'"),
        "workspaces.id",
    ),
    "a table with the name of a later one": (("CREATE TABLE archives (id integer)",), "archives"),
    "no users": (("DROP TABLE users CASCADE",), "users"),
    "two users of one name": (
        (
            "ALTER TABLE users DROP CONSTRAINT users_username_key",
            "UPDATE users SET username = 'ann'",
        ),
        "uq_users_username",
    ),
    "a workspace without an owner": (
        (
            "ALTER TABLE workspaces DROP CONSTRAINT workspaces_owner_user_id_fkey",
            "UPDATE workspaces SET owner_user_id = id WHERE status = 'RUNNING'",
        ),
        "fk_workspaces_owner_user_id_users",
    ),
    "a user without a password": (
        (
            "ALTER TABLE users ALTER password_hash DROP NOT NULL",
            "UPDATE users SET password_hash = NULL WHERE username = 'ann'",
        ),
        "password_hash",
    ),
    "a view of a column that is converted": (
        (*VARIANTS["ids as text"], "CREATE VIEW names AS SELECT id, username FROM users"),
        "names",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_database_that_only_looks_like_m1_is_left_alone(empty_database_url: str, case: str) -> None:
    statements, named = REFUSED[case]
    await fill_database(empty_database_url, *statements)
    before = [await read_catalog(empty_database_url, each) for each in CATALOGUES.values()]
    with pytest.raises(MigrationRefused, match=named):
        await runner.upgrade(empty_database_url)
    assert [await read_catalog(empty_database_url, each) for each in CATALOGUES.values()] == before


async def test_current_tables_without_a_revision_are_not_taken_for_m1(database_url: str) -> None:
    await fetch(database_url, "DROP TABLE alembic_version")
    with pytest.raises(MigrationRefused, match="alembic_version"):
        await runner.upgrade(database_url)


async def test_the_whole_database_is_converted_or_nothing(empty_database_url: str) -> None:
    """The revision after the stamp refuses a name that differs only in case; after a fix, it continues."""
    await fill_database(empty_database_url, "UPDATE users SET username = 'Bob' WHERE username = 'ann'")
    with pytest.raises(MigrationRefused, match="Bob"):
        await runner.upgrade(empty_database_url)
    assert await runner.current(empty_database_url) == "0001_m1"
    await fetch(empty_database_url, "UPDATE users SET username = 'ann' WHERE username = 'Bob'")
    assert (await runner.upgrade(empty_database_url)).before == "0001_m1"


async def fetch(url: str, query: str, *arguments: object) -> list[dict[str, Any]]:
    connection = await connect(url)
    try:
        return [dict(row) for row in await connection.fetch(query, *arguments)]
    finally:
        await connection.close()
