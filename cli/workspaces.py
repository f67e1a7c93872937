"""`codehub ws`: a person's workspaces."""

import typer

from cli.exit_codes import EPILOG
from cli.workspace_create import create
from cli.workspace_history import events, logs
from cli.workspace_list import ls
from cli.workspace_open import open_in_browser
from cli.workspace_recover import recover
from cli.workspace_remove import rm, undelete
from cli.workspace_show import show
from cli.workspace_states import archive, restart, restore, start, stop

workspaces = typer.Typer(no_args_is_help=True, help="Manage your workspaces.", epilog=EPILOG)

COMMANDS = (ls, show, create, start, stop, restart, archive, restore, recover, rm, undelete, logs, events)

for command in COMMANDS:
    workspaces.command()(command)
workspaces.command("open")(open_in_browser)
