"""`codehub migrate`: migrate the database schema, and import the homes of M1."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from alembic.util import CommandError as UnknownRevision

from cli.errors import CommandError
from cli.stack import NoDatabase, database_url, effective_settings
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
            help="Migrate to this revision. Stop CodeHub before a downgrade.",
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
            help="Then import the homes of M1 in DIR. Run it again to continue after an interruption.",
        ),
    ] = None,
    accept_missing: Annotated[
        bool,
        typer.Option(
            "--accept-missing",
            help="With --import-homes: give up homes that are not in DIR. Their owners see them as lost.",
        ),
    ] = False,
) -> None:
    """Migrate the database to the schema of this version. Safe to repeat, and while CodeHub is running.

    Databases of M1 are recognized. A downgrade that would lose a home is refused.
    """
    if import_from is not None and to != runner.HEAD:
        raise typer.BadParameter("--import-homes needs the latest schema, so it cannot be used with --to")
    if accept_missing and import_from is None:
        raise typer.BadParameter("--accept-missing needs --import-homes")
    settings = load_settings()
    try:
        typer.echo(_describe(asyncio.run(runner.go_to(database_url(settings), to))))
        if import_from is not None and not _import(import_from, accept_missing=accept_missing):
            raise typer.Exit(FAILED)
    except (MigrationError, DatabaseUnavailable, NoDatabase, Failure) as error:
        raise CommandError(str(error)) from error
    except UnknownRevision as error:
        raise CommandError(
            f"{error}: this version of CodeHub does not know that revision. The database may be newer."
        ) from error


def _import(directory: Path, *, accept_missing: bool) -> bool:
    # Imported here because it loads every adapter, and most migrations import nothing.
    from cli.import_homes import import_homes  # noqa: PLC0415
    from migrations.homes import CannotImport  # noqa: PLC0415

    settings = effective_settings(load_settings())
    try:
        return asyncio.run(import_homes(settings, directory, accept_missing=accept_missing))
    except CannotImport as error:
        raise CommandError(str(error)) from error


def _describe(change: runner.Change) -> str:
    if change.before == change.after:
        return f"The database is already at {change.after}."
    return f"Migrated the database: {change.before or 'empty'} → {change.after or 'empty'}."
