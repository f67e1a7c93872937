"""The entry point of the `codehub` command, which loads each subcommand when it is used."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from cli.errors import CommandError

if TYPE_CHECKING:
    from codehub.settings import SettingsError

WRONG_SETTINGS = 2

# Module and attribute of each command. Loading all of them would make shell completion slow.
COMMANDS = {
    "up": "cli.up.commands:up",
    "down": "cli.up.commands:down",
    "status": "cli.up.status:status",
    "doctor": "cli.doctor:doctor",
    "temporal-ui": "cli.temporal_ui:temporal_ui",
    "login": "cli.login:login",
    "logout": "cli.login:logout",
    "ws": "cli.workspace.commands:workspaces",
    "token": "cli.tokens:tokens",
    "user": "cli.user:user",
    "admin": "cli.admin:admin",
    "audit": "cli.audit:audit",
    "settings": "cli.settings:settings",
    "homes": "cli.homes:homes",
    "migrate": "cli.migrate:migrate",
    "gameday": "cli.gameday:gameday",
}


class LazyCommands(Mapping[str, Any]):
    """The commands by name; loads a command when it is looked up."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 (typer does not export the type)
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(module), attribute)
        command = typer.main.get_group(found) if isinstance(found, typer.Typer) else _make_command(found)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _make_command(function: Callable[..., None]) -> Any:  # noqa: ANN401
    application = typer.Typer(add_completion=False)
    application.command()(function)
    return typer.main.get_command(application)


class RootGroup(TyperGroup):
    """The root command; prints a CommandError without a traceback."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401
        super().__init__(**attributes)
        self.commands = LazyCommands()  # type: ignore[assignment]

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except CommandError as error:
            error.show()
            raise typer.Exit(error.code) from None


# Typer's own tracebacks print local variables, which may contain secrets.
app = typer.Typer(cls=RootGroup, no_args_is_help=True, pretty_exceptions_enable=False)


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
    """Run the command line; invalid settings are a message and an exit code, not a traceback."""
    try:
        app()
    # Evaluated only after an exception: most commands read no settings.
    except _settings_error() as error:
        typer.echo("CodeHub is not configured correctly:", err=True)
        for problem in error.problems:
            typer.echo(f"  {problem}", err=True)
        sys.exit(WRONG_SETTINGS)


def _settings_error() -> type["SettingsError"]:
    from codehub.settings import SettingsError  # noqa: PLC0415

    return SettingsError
