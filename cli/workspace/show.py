"""`codehub ws show` and `codehub ws open`: look at one workspace."""

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
from cli.control_characters import printable
from cli.formatting import ago, format_size, local_time, now
from cli.options import AsJson, Url, WorkspaceArgument
from cli.terminal import console, print_json, print_note
from cli.words import (
    command,
    condition_text,
    failure_headline,
    next_change_text,
    phase_cell,
    phase_label,
    phase_meaning,
    progress_text,
)
from cli.workspace.lookup import find_workspace
from cli.workspace.recover import describe_archive_option, describe_choice
from codehub.domain.conditions import Status
from codehub.domain.states import Phase
from codehub.words import CONDITIONS, OUT_OF_REACH

Workspace = Mapping[str, Any]
Row = tuple[str, Text | str]

# Without one of these variables, a browser would run inside the terminal.
DISPLAY_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def show(name: WorkspaceArgument, as_json: AsJson = False, url: Url = None) -> None:
    """Show a workspace: its state, what happens next, and what to do about an error."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
    if as_json:
        print_json(workspace)
    else:
        console().print(render(workspace, now()))


def open_in_browser(
    name: WorkspaceArgument,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser if there is one.")
    ] = True,
    url: Url = None,
) -> None:
    """Print the address of its IDE and open it in a browser."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
    typer.echo(printable(workspace["url"]))
    if workspace["phase"] != Phase.RUNNING:
        label = phase_label(workspace["phase"]).lower()
        print_note(f"It is {label}. Start it there, or with: {command('start', workspace)}")
    if browser and _has_browser():
        webbrowser.open(workspace["url"])


def _has_browser() -> bool:
    return sys.platform == "darwin" or any(os.environ.get(name) for name in DISPLAY_VARIABLES)


def render(workspace: Workspace, at: datetime) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    rows = (*_about(workspace), *_state(workspace, at), *_error(workspace), *_conditions(workspace, at))
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
    yield "created", local_time(workspace["created_at"])


def _state(workspace: Workspace, at: datetime) -> Iterator[Row]:
    yield "state", Text.assemble(phase_cell(workspace), f". {phase_meaning(workspace)}")
    if text := progress_text(workspace):
        started = workspace["operation_started_at"]
        yield "in progress", f"{text}, started {ago(started)}" if started else text
    if workspace["restart_to_apply"]:
        changed = workspace["conditions"]["infra.configuration_current"]["message"]
        yield "configuration", f"{changed} Use: {command('restart', workspace)}"
    if change := next_change_text(workspace, at):
        yield "next", f"it {change}"
    if workspace["disk"]["used_bytes"] is not None:
        yield "disk space", disk_text(workspace["disk"])
    yield "last used", ago(workspace["last_access_at"])
    if archive := workspace["archive"]:
        yield "last archive", f"{format_size(archive['size_bytes'])}, created {ago(archive['created_at'])}"
    if workspace["undelete_until"]:
        yield "undelete", f"at least until {local_time(workspace['undelete_until'])}"


def disk_text(disk: Workspace) -> str:
    """Return usage and limit, when usage was measured, and what to do."""
    least = "" if disk["complete"] else "at least "
    of = f" of {format_size(disk['limit_bytes'])}" if disk["limit_bytes"] else ""
    used = f"{least}{format_size(disk['used_bytes'])}{of}, measured {ago(disk['measured_at'])}"
    return f"{used}. {disk['message']}" if disk["message"] else used


def _error(workspace: Workspace) -> Iterator[Row]:
    if lost := workspace["out_of_reach"]:
        yield "out of reach", Text(printable(f"{OUT_OF_REACH.headline}: {lost['message']}"), "bold red")
    if error := workspace["error"]:
        text = f"{failure_headline(workspace)}: {error['message'] or error['explanation']}"
        yield "error", Text(printable(text), "bold red")
        if error["message"] not in {None, error["explanation"]}:
            yield "what it means", error["explanation"]
    if recover := workspace["recover"]:
        yield from _options(workspace, recover)


def _options(workspace: Workspace, recover: Workspace) -> Iterator[Row]:
    for option in recover["choices"]:
        choice = f"{command('recover', workspace)} --choice {option['choice']}"
        yield "what to do", f"{choice}: {describe_choice(option)}"
    for archive in recover["archives"]:
        yield "archive", describe_archive_option(archive)
    if recover["undelete"]:
        yield "what to do", f"{command('undelete', workspace)}: keep the workspace"
        yield "what to do", f"{command('rm', workspace)} --purge: delete it for good, without a last archive"


def _conditions(workspace: Workspace, at: datetime) -> Iterator[Row]:
    for key, words in CONDITIONS.items():
        condition = workspace["conditions"].get(key)
        if condition and (not words.only_if_false or condition["status"] == Status.FALSE):
            yield words.title, condition_text(key, condition, at)
    if workspace["observed_at"]:
        yield "checked", ago(workspace["observed_at"])
