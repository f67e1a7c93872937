"""The commands of `codehub ws`."""

import typer

from cli.errors import EPILOG
from cli.workspace.history import events, logs
from cli.workspace.lifecycle import archive, create, restart, restore, start, stop
from cli.workspace.list import ls
from cli.workspace.network import network
from cli.workspace.ports import ports, share, unshare
from cli.workspace.recover import recover
from cli.workspace.remove import rm, undelete
from cli.workspace.show import open_in_browser, show

workspaces = typer.Typer(no_args_is_help=True, help="Manage your workspaces.", epilog=EPILOG)

COMMANDS = (
    ls,
    show,
    create,
    start,
    stop,
    restart,
    archive,
    restore,
    recover,
    rm,
    undelete,
    network,
    ports,
    share,
    unshare,
    logs,
    events,
)

for command in COMMANDS:
    workspaces.command()(command)
workspaces.command("open")(open_in_browser)
