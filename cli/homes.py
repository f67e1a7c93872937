"""`codehub homes`: the home store that this database uses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer
from sqlalchemy.exc import DBAPIError

from cli.errors import CommandError
from cli.stack import NoDatabase, effective_settings
from codehub.bootstrap import open_database
from codehub.db.session import Database, DatabaseUnavailable
from codehub.domain.failures import Failure
from codehub.providers import open_providers
from codehub.services.home_store import (
    Comparison,
    Homes,
    WrongBackend,
    adopt_home_store,
    compare_home_stores,
    explain_difference,
    require_backend,
)
from codehub.settings import Settings, load_settings

NO_IDENTITY = "not set up"

homes = typer.Typer(no_args_is_help=True, help="Manage where the homes of the workspaces are stored.")


@dataclass(frozen=True)
class Found:
    """The recorded and the existing home store, and what is wrong if they differ."""

    comparison: Comparison
    backend: str
    location: str
    problem: str | None

    @property
    def missing(self) -> int:
        return self.comparison.expected - self.comparison.present


@homes.command()
def adopt(
    yes: Annotated[
        bool, typer.Option("--yes", help="Record the change. Without it, only show what was found.")
    ] = False,
) -> None:
    """Record the new home store after you have moved the homes to another disk, engine or machine.

    Stop the workers first: a running worker still uses the old homes.
    """
    found = asyncio.run(_adopt(load_settings(), yes=yes))
    _print(found)
    if found.comparison.recorded and not found.problem:
        typer.echo("The homes are where the database expects them. There is nothing to do.")
    elif not yes:
        raise CommandError(
            "Nothing was changed.", "Stop the workers, move the homes here, then run this again with --yes."
        )
    else:
        typer.echo(f"The homes of this database are now in {found.location}. Start CodeHub again.")


async def find_homes(settings: Settings) -> Found:
    """Compare the recorded home store with the existing one."""
    async with _open_homes(settings) as (database, present):
        return await _find(database, present)


async def _adopt(settings: Settings, *, yes: bool) -> Found:
    try:
        async with _open_homes(settings) as (database, present):
            async with database.transaction() as session:
                await require_backend(session, present.backend)
            found = await _find(database, present)
            if yes and (found.problem or found.comparison.recorded is None):
                await adopt_home_store(database, present, datetime.now(UTC))
            return found
    except NoDatabase as error:
        raise CommandError(str(error), "To start only the servers, run: codehub up --servers-only") from error
    except (WrongBackend, DatabaseUnavailable, Failure) as error:
        raise CommandError(str(error)) from error
    except DBAPIError as error:
        reason = str(error.orig).partition("\n")[0]
        raise CommandError(
            f"The database reported an error: {reason}", "Update its schema with: codehub migrate"
        ) from error


@asynccontextmanager
async def _open_homes(settings: Settings) -> AsyncIterator[tuple[Database, Homes]]:
    """Open the database and the homes that CodeHub uses on this machine."""
    effective = effective_settings(settings)
    async with open_database(effective) as database, open_providers(effective) as providers:
        yield database, providers.homes


async def _find(database: Database, present: Homes) -> Found:
    comparison = await compare_home_stores(database, present)
    recorded, identity = comparison.recorded, comparison.identity
    problem = explain_difference(recorded, present.backend, present.store, identity) if recorded else None
    return Found(comparison, present.backend, present.store.location, problem)


def _print(found: Found) -> None:
    comparison = found.comparison
    recorded = comparison.recorded
    if recorded:
        typer.echo(f"recorded  {recorded.backend}: {recorded.location}")
        typer.echo(f"          {recorded.identity}, since {recorded.recorded_at:%Y-%m-%d %H:%M} UTC")
    else:
        typer.echo("recorded  none yet")
    typer.echo(f"found     {found.backend}: {found.location}")
    typer.echo(f"          {comparison.identity or NO_IDENTITY}")
    typer.echo(f"homes     {comparison.present} of the {comparison.expected} expected homes exist here")
    if found.missing:
        typer.echo(
            f"missing   {found.missing}: these workspaces fail until you put their home back or recover them "
            "from an archive"
        )
