"""`codehub ws ls`: list workspaces."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cli.client import connect
from cli.control_characters import printable
from cli.formatting import ago, format_size, local_time
from cli.options import AsJson, Search, Url
from cli.terminal import console, new_table, print_json, print_note
from cli.words import next_change_text, phase_cell, progress_text
from codehub.domain.states import Phase

Workspace = Mapping[str, Any]
Phases = Annotated[
    list[Phase] | None,
    typer.Option("--phase", metavar="PHASE", help="Only workspaces in this phase. Can be repeated."),
]


def ls(
    phases: Phases = None,
    search: Search = None,
    deleted: Annotated[
        bool, typer.Option("--deleted", help="List deleted workspaces, which you can undelete.")
    ] = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List your workspaces, newest first."""
    filters = {"phase": [each.value for each in phases or []], "deleted": deleted} | (
        {"q": search} if search else {}
    )
    with connect(url) as client:
        found = list(client.items("/workspaces", **filters))
    if as_json:
        print_json({"items": found, "next_cursor": None})
    elif not found:
        print_note("No workspaces. Create one with: codehub ws create NAME")
    else:
        console().print(render_deleted(found) if deleted else render_table(found))


def render_table(found: Iterable[Workspace]) -> Table:
    table = new_table("name", "state", "in progress", "next", "last used", "archive")
    for each in found:
        table.add_row(
            Text(printable(each["name"])),
            phase_cell(each),
            progress_text(each),
            next_change_text(each),
            ago(each["last_access_at"]),
            format_size(each["archive"]["size_bytes"]) if each["archive"] else "",
        )
    return table


def render_deleted(found: Iterable[Workspace]) -> Table:
    table = new_table("name", "id", "deleted", "undelete")
    for each in found:
        until = each["undelete_until"]
        text = f"at least until {local_time(until)}" if until else "not possible"
        table.add_row(Text(printable(each["name"])), each["id"], ago(each["deleted_at"]), text)
    return table
