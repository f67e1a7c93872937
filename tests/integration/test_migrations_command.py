"""`codehub migrate` says what it did, or why it did nothing."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from codehub.db.session import Database, connect, create_engine
from migrations import runner
from testkit.rows import add_user, add_workspace
from tests.m1.leftovers import fill_database

HEAD = runner.revisions()[-1]


async def run_migrate(monkeypatch: pytest.MonkeyPatch, url: str | None, *arguments: str) -> Result:
    """Run the command in a thread, because it runs its own event loop."""
    if url is None:
        monkeypatch.delenv("CODEHUB_DATABASE_URL", raising=False)
    else:
        monkeypatch.setenv("CODEHUB_DATABASE_URL", url)
    return await asyncio.to_thread(CliRunner().invoke, app, ("migrate", *arguments))


async def test_command_prints_both_revisions(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await run_migrate(monkeypatch, empty_database_url, "--to", "0002_expand")
    assert (result.exit_code, result.output) == (0, "Migrated the database: empty → 0002_expand.\n")
    result = await run_migrate(monkeypatch, empty_database_url)
    assert result.output == f"Migrated the database: 0002_expand → {HEAD}.\n"
    result = await run_migrate(monkeypatch, empty_database_url)
    assert result.output == f"The database is already at {HEAD}.\n"


@pytest.mark.parametrize("name", ["0006_notify", "0006"])
async def test_the_schema_is_downgraded_and_upgraded_again(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    await runner.upgrade(empty_database_url)
    result = await run_migrate(monkeypatch, empty_database_url, "--to", name)
    assert result.output == f"Migrated the database: {HEAD} → 0006_notify.\n"
    result = await run_migrate(monkeypatch, empty_database_url, "--to", "0008")
    assert result.output == "Migrated the database: 0006_notify → 0008_api.\n"


async def test_a_database_of_m1_is_upgraded_and_downgraded(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill_database(empty_database_url)
    result = await run_migrate(monkeypatch, empty_database_url)
    assert result.output == f"Migrated the database: M1 → {HEAD}.\n"
    result = await run_migrate(monkeypatch, empty_database_url, "--to", "0001_m1")
    assert result.output == f"Migrated the database: {HEAD} → 0001_m1.\n"


@pytest.mark.parametrize("name", ["0099_other", "00", ""])
async def test_an_unknown_revision_lists_the_known_ones(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    result = await run_migrate(monkeypatch, empty_database_url, "--to", name)
    assert result.exit_code == 1
    known = ", ".join(["base", *runner.revisions(), "head"])
    assert result.output == f"There is no single revision {name!r}; this version knows: {known}.\n"
    assert await runner.current(empty_database_url) is None


async def test_a_downgrade_that_would_lose_a_home_is_refused(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Database(create_engine(database_url)) as database, database.transaction() as session:
        owner = await add_user(session)
        workspace_id = await add_workspace(
            session, owner, phase="ARCHIVED", archive_key="archives/w/o/home.tar.zst"
        )
    result = await run_migrate(monkeypatch, database_url, "--to", "0001_m1")
    assert result.exit_code == 1
    assert workspace_id in result.output
    assert "Traceback" not in result.output
    assert await runner.current(database_url) == HEAD


async def test_a_downgrade_to_an_empty_schema_is_refused_while_there_are_users(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Database(create_engine(database_url)) as database, database.transaction() as session:
        await add_user(session)
    result = await run_migrate(monkeypatch, database_url, "--to", "base")
    assert result.exit_code == 1
    assert "would drop every user and workspace" in result.output
    # The refusal comes before any downgrade.
    assert await runner.current(database_url) == HEAD


@pytest.mark.parametrize("name", ["codehub", "codehub-relay"])
async def test_a_downgrade_is_refused_while_codehub_runs(
    database_url: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    process = await connect(database_url, application_name=name)
    result = await run_migrate(monkeypatch, database_url, "--to", "0006")
    assert result.exit_code == 1
    assert "Stop all CodeHub processes" in result.output
    await process.close()
    assert await runner.current(database_url) == HEAD
    assert (await run_migrate(monkeypatch, database_url, "--to", "0006")).exit_code == 0


async def test_homes_are_imported_only_into_the_newest_schema(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arguments = ("--to", "0006", "--import-homes", str(tmp_path))
    assert (await run_migrate(monkeypatch, empty_database_url, *arguments)).exit_code == 2
    assert await runner.current(empty_database_url) is None


async def test_url_may_name_the_driver(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = empty_database_url.replace("postgresql://", "postgresql+asyncpg://")
    assert (await run_migrate(monkeypatch, url)).exit_code == 0


async def test_missing_url_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CODEHUB_DATA_DIR", str(tmp_path))
    result = await run_migrate(monkeypatch, None)
    assert result.exit_code == 1
    assert "or set CODEHUB_DATA_DIR or CODEHUB_DATABASE_URL" in result.output


async def test_unreachable_database_causes_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    result = await run_migrate(monkeypatch, "postgresql://ann:secret@127.0.0.1:1/codehub")
    assert result.exit_code == 1
    assert result.output.startswith("PostgreSQL cannot be used: ")
    assert "secret" not in result.output


async def test_database_of_a_newer_version_is_left_alone(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runner.upgrade(empty_database_url)
    connection = await connect(empty_database_url)
    await connection.execute("UPDATE alembic_version SET version_num = '9999_future'")
    await connection.close()
    result = await run_migrate(monkeypatch, empty_database_url)
    assert result.exit_code == 1
    assert "9999_future" in result.output
    assert "newer" in result.output
