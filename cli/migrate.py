"""`codehub migrate`: bring the database to the schema of this version."""

import asyncio
from typing import Annotated, NoReturn

import typer
from alembic.util import CommandError

from codehub.db.session import DatabaseUnavailable
from codehub.settings import load_settings
from migrations import runner
from migrations.errors import MigrationError

FAILED = 1


def migrate(
    revision: Annotated[str, typer.Option(help="The revision to upgrade to.")] = "head",
) -> None:
    """Bring the database to the schema of this version; safe to run again, and while CodeHub runs."""
    url = load_settings().database.url
    if url is None:
        _fail("CODEHUB_DATABASE_URL is not set; the embedded database is migrated by `codehub up`.")
    try:
        change = asyncio.run(runner.upgrade(url.get_secret_value(), revision))
    except (MigrationError, DatabaseUnavailable) as error:
        _fail(str(error))
    except CommandError as error:
        _fail(f"{error}: this version of CodeHub does not know that revision; the database may be newer.")
    typer.echo(_describe(change))


def _describe(change: runner.Change) -> str:
    if change.before == change.after:
        return f"The database is at {change.after} already."
    return f"Migrated the database: {change.before or 'empty'} → {change.after}."


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(FAILED)
