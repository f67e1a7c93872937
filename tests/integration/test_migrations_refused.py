"""Migrations refuse what would lose data."""

from hashlib import sha256
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete

from codehub.db.models import Archive
from codehub.db.session import Database, connect, create_engine
from migrations import runner
from migrations.errors import MigrationRefused
from testkit.rows import NOW, add_user, add_workspace

M1 = "0001_m1"
KEY = "archives/w/o/home.tar.zst"


async def status_after_downgrade(url: str, **columns: object) -> str:
    async with Database(create_engine(url)) as database, database.transaction() as session:
        await add_workspace(session, await add_user(session), **columns)
    await runner.downgrade(url, M1)
    connection = await connect(url)
    status: str = await connection.fetchval("SELECT status FROM workspaces")
    await connection.close()
    return status


@pytest.mark.parametrize(
    ("phase", "desired", "operation", "status"),
    [
        ("PENDING", "ARCHIVED", "NONE", "CREATED"),
        ("PENDING", "RUNNING", "PROVISIONING", "CREATED"),
        ("STANDBY", "RUNNING", "STARTING", "PROVISIONING"),
        ("STANDBY", "ARCHIVED", "NONE", "STOPPED"),
        ("RUNNING", "ARCHIVED", "STOPPING", "STOPPING"),
        ("RUNNING", "DELETED", "NONE", "DELETING"),
    ],
)
async def test_downgrade_uses_the_closest_status(
    database_url: str, phase: str, desired: str, operation: str, status: str
) -> None:
    found = await status_after_downgrade(
        database_url,
        phase=phase,
        desired_state=desired,
        operation=operation,
        op_started_at=None if operation == "NONE" else NOW,
        deleted_at=NOW if desired == "DELETED" else None,
    )
    assert found == status


async def test_downgrade_keeps_a_restored_home_that_also_has_an_archive(database_url: str) -> None:
    columns = {"phase": "STANDBY", "desired_state": "STANDBY", "archive_key": KEY}
    assert await status_after_downgrade(database_url, **columns) == "STOPPED"


@pytest.mark.parametrize(
    "columns",
    [
        {"phase": "ARCHIVED", "archive_key": KEY},
        {"phase": "ERROR", "error_reason": "DataLost", "archive_key": KEY},
        {"phase": "STANDBY", "operation": "ARCHIVING", "op_started_at": NOW},
        {"phase": "STANDBY", "storage_backend": "docker-volume"},
        {"phase": "STANDBY", "home_ctx": {"imported_from": "users/u/workspaces/w/home"}},
    ],
    ids=["archived", "broken with an archive", "being archived", "home elsewhere", "imported from M1"],
)
async def test_downgrade_is_refused_if_m1_could_not_open_a_home(
    database_url: str, columns: dict[str, object]
) -> None:
    workspace_id = uuid4()
    with pytest.raises(MigrationRefused, match=str(workspace_id)):
        await status_after_downgrade(database_url, id=workspace_id, **columns)
    assert await runner.current(database_url) == "0007_drop_m1"


async def test_downgrade_is_refused_while_a_recovery_keeps_archives(database_url: str) -> None:
    workspace_id, engine = uuid4(), create_engine(database_url)
    async with Database(engine).transaction() as session:
        await add_workspace(session, await add_user(session), id=workspace_id, phase="STANDBY")
        session.add(Archive(key=KEY, workspace_id=workspace_id, archive_op_id=uuid4(), given_up_at=NOW))
    with pytest.raises(MigrationRefused, match=str(workspace_id)):
        await runner.downgrade(database_url, "0010_usage")
    async with Database(engine).transaction() as session:
        await session.execute(delete(Archive))
    await engine.dispose()
    assert (await runner.downgrade(database_url, "0010_usage")).after == "0010_usage"


async def test_user_names_that_differ_only_in_case_are_reported_before_anything_changes(
    empty_database_url: str,
) -> None:
    await runner.upgrade(empty_database_url, M1)
    connection = await connect(empty_database_url)
    for name in ("Ann", "ann", "bob"):
        await connection.execute("INSERT INTO users VALUES ($1, $2, '-')", uuid4(), name)
    with pytest.raises(MigrationRefused, match="Ann"):
        await runner.upgrade(empty_database_url)
    assert await runner.current(empty_database_url) == M1
    await connection.execute("UPDATE users SET username = 'anna' WHERE username = 'Ann'")
    await connection.close()
    assert (await runner.upgrade(empty_database_url)).after == runner.find_revision("head")


async def add_m1_session(url: str) -> UUID:
    await runner.upgrade(url, M1)
    user_id, cookie = uuid4(), uuid4()
    connection = await connect(url)
    await connection.execute("INSERT INTO users VALUES ($1, 'ann', '-')", user_id)
    await connection.execute(
        "INSERT INTO sessions (id, user_id, expires_at) VALUES ($1, $2, 'infinity')", cookie, user_id
    )
    await connection.close()
    return cookie


async def test_cookie_of_m1_still_works_but_is_no_longer_stored(empty_database_url: str) -> None:
    cookie = await add_m1_session(empty_database_url)
    await runner.upgrade(empty_database_url)
    connection = await connect(empty_database_url)
    [row] = await connection.fetch("SELECT * FROM sessions")
    await connection.close()
    assert row["token_hash"] == sha256(str(cookie).encode()).digest()
    assert row["id"] != cookie
    assert row["revoked_at"] is None


async def test_downgrade_ends_sessions_because_m1_cannot_find_them(empty_database_url: str) -> None:
    await add_m1_session(empty_database_url)
    await runner.upgrade(empty_database_url)
    await runner.downgrade(empty_database_url, M1)
    connection = await connect(empty_database_url)
    [row] = await connection.fetch("SELECT * FROM sessions")
    await connection.close()
    assert row["revoked_at"] is not None
