"""`codehub migrate` says what it did, or in one sentence why not."""

import asyncio

import pytest
import typer
from typer.testing import CliRunner, Result

from cli.migrate import migrate
from codehub.db.session import connect
from migrations import runner

app = typer.Typer()
app.command()(migrate)


async def run_migrate(monkeypatch: pytest.MonkeyPatch, url: str | None, *arguments: str) -> Result:
    """In a thread, because the command runs an event loop of its own."""
    if url is None:
        monkeypatch.delenv("CODEHUB_DATABASE_URL", raising=False)
    else:
        monkeypatch.setenv("CODEHUB_DATABASE_URL", url)
    return await asyncio.to_thread(CliRunner().invoke, app, arguments)


async def test_command_prints_from_where_to_where(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await run_migrate(monkeypatch, empty_database_url, "--revision", "0002_expand")
    assert (result.exit_code, result.output) == (0, "Migrated the database: empty → 0002_expand.\n")
    result = await run_migrate(monkeypatch, empty_database_url)
    assert result.output == "Migrated the database: 0002_expand → 0011_home_store.\n"
    result = await run_migrate(monkeypatch, empty_database_url)
    assert result.output == "The database is at 0011_home_store already.\n"


async def test_url_may_name_the_driver(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = empty_database_url.replace("postgresql://", "postgresql+asyncpg://")
    assert (await run_migrate(monkeypatch, url)).exit_code == 0


async def test_missing_url_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    result = await run_migrate(monkeypatch, None)
    assert result.exit_code == 1
    assert "CODEHUB_DATABASE_URL is not set" in result.output


async def test_database_that_cannot_be_reached_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
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
