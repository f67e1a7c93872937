"""The entry point of the `codehub` command: each subcommand lives in its own file."""

import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands import Commands

if TYPE_CHECKING:
    from codehub.settings import SettingsError

WRONG_SETTINGS = 2

# Plain tracebacks for what is unexpected: typer's own print local variables, secrets among them.
app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)


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
    # Looked up only if something was raised: most commands read no settings.
    except _settings_error() as error:
        typer.echo("CodeHub is not configured correctly:", err=True)
        for problem in error.problems:
            typer.echo(f"  {problem}", err=True)
        sys.exit(WRONG_SETTINGS)


def _settings_error() -> type["SettingsError"]:
    from codehub.settings import SettingsError  # noqa: PLC0415

    return SettingsError
