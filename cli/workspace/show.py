"""`codehub ws show`: everything about one workspace, in plain words."""

import os
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cli.client import connect
from cli.errors import printable
from cli.formatting import ago, at, clock, now, rough, size
from cli.options import AsJson, Target, Url
from cli.terminal import console, print_json, say
from cli.words import (
    command,
    condition_words,
    failure_headline,
    phase_cell,
    phase_label,
    phase_meaning,
    under_way,
    what_next,
)
from cli.workspace.lookup import find_workspace
from cli.workspace.recover import archive_option, in_words
from codehub.domain.conditions import Status
from codehub.domain.states import Phase
from codehub.words import CONDITIONS

Workspace = Mapping[str, Any]
Row = tuple[str, Text | str]


def show(name: Target, as_json: AsJson = False, url: Url = None) -> None:
    """Show one: where it is, what happens next, and what to do about an error."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
    if as_json:
        print_json(workspace)
    else:
        console().print(render(workspace, now()))


def render(workspace: Workspace, at_: datetime) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    rows = (*_about(workspace), *_state(workspace, at_), *_error(workspace), *_observed(workspace, at_))
    for title, value in rows:
        grid.add_row(title, Text(printable(value)) if isinstance(value, str) else value)
    return grid


def _about(workspace: Workspace) -> Iterator[Row]:
    yield "name", workspace["name"]
    yield "id", workspace["id"]
    yield "address", workspace["url"]
    yield "owner", workspace["owner"]["username"]
    if workspace["description"]:
        yield "description", workspace["description"]
    yield "image", workspace["image_ref"]
    yield "created", clock(workspace["created_at"])


def _state(workspace: Workspace, at_: datetime) -> Iterator[Row]:
    yield "state", Text.assemble(phase_cell(workspace), f". {phase_meaning(workspace)}")
    if doing := under_way(workspace):
        since = workspace["operation_started_at"]
        yield "under way", f"{doing}, since {ago(since)}" if since else doing
    if workspace["restart_to_apply"]:
        changed = workspace["conditions"]["infra.configuration_current"]["message"]
        yield "configuration", f"{changed} Use: {command('restart', workspace)}"
    if change := what_next(workspace, at_):
        yield "next", f"it {change}"
    yield "last use", ago(workspace["last_access_at"])
    if archive := workspace["archive"]:
        yield "last archive", f"{size(archive['size_bytes'])}, made {ago(archive['created_at'])}"
    if workspace["undelete_until"]:
        yield "undelete", f"at least until {at(workspace['undelete_until'])}"


def _error(workspace: Workspace) -> Iterator[Row]:
    error = workspace["error"]
    if error is None:
        return
    yield (
        "error",
        Text(
            printable(f"{failure_headline(workspace)}: {error['message'] or error['explanation']}"),
            "bold red",
        ),
    )
    if error["message"] not in {None, error["explanation"]}:
        yield "what it means", error["explanation"]
    if recover := workspace["recover"]:
        yield from _ways_out(workspace, recover)


def _ways_out(workspace: Workspace, recover: Workspace) -> Iterator[Row]:
    for option in recover["choices"]:
        yield "what to do", f"{command('recover', workspace)} --choice {option['choice']}: {in_words(option)}"
    for archive in recover["archives"]:
        yield "archive", archive_option(archive)
    if recover["undelete"]:
        yield "what to do", f"{command('undelete', workspace)}: keep the workspace"
        yield "what to do", f"{command('rm', workspace)} --purge: delete it without a last archive, for good"


def _observed(workspace: Workspace, at_: datetime) -> Iterator[Row]:
    for key, words in CONDITIONS.items():
        condition = workspace["conditions"].get(key)
        if condition and (not words.only_if_false or condition["status"] == Status.FALSE):
            yield words.title, condition_words(key, condition, at_)
    if workspace["observed_at"]:
        yield "looked at", f"{rough(at_ - datetime.fromisoformat(workspace['observed_at']))} ago"


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
        label = phase_label(workspace["phase"]).lower()
        say(f"It is {label}; start it there, or with: {command('start', workspace)}")
    if browser and _has_browser():
        webbrowser.open(workspace["url"])


def _has_browser() -> bool:
    """Whether there is a window to open: one in the terminal would take it over."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in DISPLAYS)
