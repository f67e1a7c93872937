"""The commands by name. Each is loaded when asked for: a completion must not wait for half the system."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from cli.errors import Failed

if TYPE_CHECKING:
    from codehub.settings import SettingsError

COMMANDS = {
    "up": "cli.up.commands:up",
    "down": "cli.up.commands:down",
    "status": "cli.up.status:status",
    "doctor": "cli.doctor:doctor",
    "login": "cli.login:login",
    "logout": "cli.login:logout",
    "ws": "cli.workspace.commands:workspaces",
    "token": "cli.tokens:tokens",
    "user": "cli.user:user",
    "admin": "cli.admin:admin",
    "settings": "cli.settings:settings",
    "homes": "cli.homes:homes",
    "migrate": "cli.migrate:migrate",
    "gameday": "cli.gameday:gameday",
}


class Loading(Mapping[str, Any]):
    """A mapping of names to commands that loads what it is asked for."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 (typer keeps the type to itself)
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(module), attribute)
        command = typer.main.get_group(found) if isinstance(found, typer.Typer) else _single(found)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _single(function: Callable[..., None]) -> Any:  # noqa: ANN401
    alone = typer.Typer(add_completion=False)
    alone.command()(function)
    return typer.main.get_command(alone)


class Commands(TyperGroup):
    """The root: a failure that was foreseen is a few lines and an exit code, not a traceback."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401
        super().__init__(**attributes)
        self.commands = Loading()  # type: ignore[assignment]

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except Failed as failure:
            failure.tell()
            raise typer.Exit(failure.code) from None


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
