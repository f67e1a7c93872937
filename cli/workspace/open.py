"""`codehub ws open`: to the IDE."""

import os
import sys
import webbrowser
from typing import Annotated

import typer

from cli.client import connect
from cli.options import Target, Url
from cli.output import say
from cli.words import command
from cli.workspace.lookup import find_workspace
from codehub.domain.states import Phase

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def open_in_browser(
    name: Target,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser if there is one.")
    ] = True,
    url: Url = None,
) -> None:
    """Print where its IDE is, and open it in a browser."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
    typer.echo(workspace["url"])
    if workspace["phase"] != Phase.RUNNING:
        say(f"It is {workspace['phase']}; start it there, or with: {command('start', workspace)}")
    if browser and _has_browser():
        webbrowser.open(workspace["url"])


def _has_browser() -> bool:
    """Whether there is a window to open: one in the terminal would take it over."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in DISPLAYS)
