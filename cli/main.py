"""The entry point of the `codehub` command: each subcommand lives in its own file."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from cli.doctor import doctor
from cli.down import down
from cli.migrate import migrate
from cli.settings import settings
from cli.status import status
from cli.up import up
from cli.user import user
from codehub.settings import SettingsError

WRONG_SETTINGS = 2

# Plain tracebacks for what is unexpected: typer's own print local variables, secrets among them.
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

for command in (up, down, status, doctor, settings, migrate):
    app.command()(command)
app.add_typer(user, name="user")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"codehub {version('codehub')}")
        raise typer.Exit


@app.callback()
def codehub(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """CodeHub: cloud development environments that never lose a file."""


def main() -> None:
    """Run the command line; an expected error is a message and an exit code, not a traceback."""
    try:
        app()
    except SettingsError as error:
        typer.echo("CodeHub is not configured correctly:", err=True)
        for problem in error.problems:
            typer.echo(f"  {problem}", err=True)
        sys.exit(WRONG_SETTINGS)
