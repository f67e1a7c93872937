"""`codehub ws ls`: what there is, what goes on, and what happens next."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cli.client import connect
from cli.errors import printable
from cli.formatting import ago, at, size
from cli.options import AsJson, Url
from cli.terminal import console, print_json, say, table
from cli.words import phase_cell, under_way, what_next
from codehub.domain.states import Phase

Workspace = Mapping[str, Any]
Phases = Annotated[
    list[Phase] | None,
    typer.Option("--phase", metavar="PHASE", help="Only those in this phase; may be given several times."),
]


def ls(
    phases: Phases = None,
    search: Annotated[
        str | None, typer.Option("--search", "-s", metavar="TEXT", help="Part of a name or description.")
    ] = None,
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Those that are deleted, to undelete one.")
    ] = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List your workspaces, newest first."""
    wanted = {"phase": [each.value for each in phases or []], "deleted": deleted} | (
        {"q": search} if search else {}
    )
    with connect(url) as client:
        found = list(client.items("/workspaces", **wanted))
    if as_json:
        print_json({"items": found, "next_cursor": None})
    elif not found:
        say("There are none. Create one with: codehub ws create NAME")
    else:
        console().print(render_deleted(found) if deleted else render_table(found))


def render_table(found: Iterable[Workspace]) -> Table:
    rows = table("name", "phase", "under way", "next", "last use", "archive")
    for each in found:
        rows.add_row(
            Text(printable(each["name"])),
            phase_cell(each),
            under_way(each),
            what_next(each),
            ago(each["last_access_at"]),
            size(each["archive"]["size_bytes"]) if each["archive"] else "",
        )
    return rows


def render_deleted(found: Iterable[Workspace]) -> Table:
    rows = table("name", "id", "deleted", "undelete")
    for each in found:
        until = each["undelete_until"]
        words = f"at least until {at(until)}" if until else "not possible"
        rows.add_row(Text(printable(each["name"])), each["id"], ago(each["deleted_at"]), words)
    return rows
