"""`codehub migrate`: bring the database to the schema of a version, and the homes of M1 along."""

import asyncio
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from alembic.util import CommandError

from cli.database import NoDatabase, database_url, settings_of_stack
from codehub.db.session import DatabaseUnavailable
from codehub.domain.failures import Failure
from codehub.settings import load_settings
from migrations import runner
from migrations.errors import MigrationError

FAILED = 1


def migrate(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            "--revision",
            metavar="REVISION",
            help="The revision to go to, up or down; stop CodeHub before going down.",
        ),
    ] = runner.HEAD,
    import_from: Annotated[
        Path | None,
        typer.Option(
            "--import-homes",
            metavar="DIR",
            exists=True,
            file_okay=False,
            resolve_path=True,
            help="Then import the homes that M1 kept below DIR; run it again to go on where it stopped.",
        ),
    ] = None,
    accept_missing: Annotated[
        bool,
        typer.Option(
            "--accept-missing",
            help="With --import-homes: give up homes that are not below DIR; their owners see them as lost.",
        ),
    ] = False,
) -> None:
    """Bring the database to the schema of this version; safe to run again, and while CodeHub runs.

    A database as M1 left it is recognized. Going back to an older revision is refused where a home would
    be lost.
    """
    if import_from is not None and to != runner.HEAD:
        raise typer.BadParameter("--import-homes needs the newest schema, so it excludes --to")
    if accept_missing and import_from is None:
        raise typer.BadParameter("--accept-missing needs --import-homes")
    settings = load_settings()
    try:
        typer.echo(_describe(asyncio.run(runner.go_to(database_url(settings), to))))
        if import_from is not None and not _import(import_from, accept_missing=accept_missing):
            raise typer.Exit(FAILED)
    except (MigrationError, DatabaseUnavailable, NoDatabase, Failure) as error:
        _fail(str(error))
    except CommandError as error:
        _fail(f"{error}: this version of CodeHub does not know that revision; the database may be newer.")


def _import(directory: Path, *, accept_missing: bool) -> bool:
    # Here, because it loads every adapter, and most migrations import nothing.
    from cli.import_homes import import_homes  # noqa: PLC0415
    from migrations.homes import CannotImport  # noqa: PLC0415

    settings = settings_of_stack(load_settings())
    try:
        return asyncio.run(import_homes(settings, directory, accept_missing=accept_missing))
    except CannotImport as error:
        _fail(str(error))


def _describe(change: runner.Change) -> str:
    if change.before == change.after:
        return f"The database is at {change.after} already."
    return f"Migrated the database: {change.before or 'empty'} → {change.after or 'empty'}."


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(FAILED)
