"""`codehub homes`: where the homes of the workspaces are."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer
from sqlalchemy.exc import DBAPIError

from cli.database import NoDatabase, database_url
from cli.errors import Failed
from codehub.bootstrap import open_database
from codehub.db.session import Database, DatabaseUnavailable
from codehub.domain.failures import Failure
from codehub.embedded.backends import configured_backend, recorded_backend
from codehub.embedded.data_dir import DataDir
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
from codehub.settings import SecretUrl, Settings, load_settings

NO_IDENTITY = "not set up"

homes = typer.Typer(no_args_is_help=True, help="See where the homes of the workspaces are.")


@dataclass(frozen=True)
class Found:
    """What the database says, what is there, and the sentence about the difference, if any."""

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
        bool, typer.Option("--yes", help="Do it; without this, only show what was found.")
    ] = False,
) -> None:
    """Record that the homes are here, after you have moved them: to another disk, engine or machine.

    Stop the workers first: one that runs elsewhere still has the earlier homes.
    """
    found = asyncio.run(_adopt(load_settings(), yes=yes))
    _print(found)
    if found.comparison.recorded and not found.problem:
        typer.echo("The homes are where the database says they are. There is nothing to adopt.")
    elif not yes:
        raise Failed(
            "Nothing was changed.", "Stop the workers, put the homes here, then run it again with --yes."
        )
    else:
        typer.echo(f"From now on the homes of this database are in {found.location}. Start CodeHub again.")


async def find_homes(settings: Settings) -> Found:
    """Compare what is recorded with what is there; change nothing."""
    async with _opened(settings) as (database, present):
        return await _find(database, present)


async def _adopt(settings: Settings, *, yes: bool) -> Found:
    try:
        async with _opened(settings) as (database, present):
            async with database.transaction() as session:
                await require_backend(session, present.backend)
            found = await _find(database, present)
            if yes and (found.problem or found.comparison.recorded is None):
                await adopt_home_store(database, present, datetime.now(UTC))
            return found
    except NoDatabase as error:
        raise Failed(str(error), "`codehub up --servers-only` starts its database alone.") from error
    except (WrongBackend, DatabaseUnavailable, Failure) as error:
        raise Failed(str(error)) from error
    except DBAPIError as error:
        words = str(error.orig).partition("\n")[0]
        raise Failed(f"The database did not do it: {words}", "Run `codehub migrate` first.") from error


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[tuple[Database, Homes]]:
    """The database and the homes that CodeHub would use on this machine."""
    data = DataDir(settings.general.data_dir.absolute())
    backend = configured_backend(settings) or recorded_backend(data) or settings.workspaces.instance_backend
    effective = settings.model_copy(
        update={
            "database": settings.database.model_copy(update={"url": SecretUrl(database_url(settings))}),
            "workspaces": settings.workspaces.model_copy(update={"instance_backend": backend}),
        }
    )
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
        typer.echo("recorded  nothing yet")
    typer.echo(f"found     {found.backend}: {found.location}")
    typer.echo(f"          {comparison.identity or NO_IDENTITY}")
    typer.echo(f"homes     {comparison.present} of {comparison.expected} that the database expects are here")
    if found.missing:
        typer.echo(
            f"          {found.missing} would count as lost: their workspaces fail until the home is put "
            "back, or somebody recovers them from their last archive"
        )
