"""`codehub admin`: the system as administrators see it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cli.client import connect
from cli.errors import EPILOG, printable
from cli.formatting import ago, at, now, parse_time
from cli.options import AsJson, Url
from cli.terminal import console, print_json, say, table
from cli.words import phase_cell, phase_label, under_way
from cli.workspace.list import Phases

admin = typer.Typer(no_args_is_help=True, help="See the whole system; for administrators.", epilog=EPILOG)

Document = Mapping[str, Any]


@admin.command()
def status(as_json: AsJson = False, url: Url = None) -> None:
    """Show every service that CodeHub needs, the sweeps, and how many workspaces run."""
    with connect(url) as client:
        found = client.get("/admin/status")
    if as_json:
        print_json(found)
        return
    screen = console()
    for line in _summary(found):
        screen.print(line)
    screen.print(render_dependencies(found["dependencies"]))
    screen.print(render_sweeps(found["sweeps"]))


@admin.command()
def users(as_json: AsJson = False, url: Url = None) -> None:
    """List all accounts by name."""
    with connect(url) as client:
        found = list(client.items("/admin/users"))
    if as_json:
        print_json({"items": found, "next_cursor": None})
    else:
        console().print(render_users(found))


@admin.command()
def workspaces(
    phases: Phases = None,
    search: Annotated[
        str | None, typer.Option("--search", "-s", metavar="TEXT", help="Part of a name or description.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List everybody's workspaces, newest first."""
    wanted: dict[str, Any] = {"phase": [each.value for each in phases or []]}
    with connect(url) as client:
        found = list(client.items("/admin/workspaces", **wanted, **({"q": search} if search else {})))
    if as_json:
        print_json({"items": found, "next_cursor": None})
    elif not found:
        say("There are none.")
    else:
        console().print(render_workspaces(found))


def render_dependencies(found: Iterable[Document]) -> Table:
    rows = table("", "service", "version", "answered in", "")
    for each in found:
        mark = (
            Text("ok", "green")
            if each["healthy"]
            else Text("down", "bold red" if each["required"] else "yellow")
        )
        milliseconds = f"{each['milliseconds']:.0f} ms"
        rows.add_row(
            mark, each["name"], each["version"] or "", milliseconds, Text(printable(each["error"] or ""))
        )
    return rows


def render_sweeps(found: Iterable[Document]) -> Table:
    rows = table("sweep", "last", "next", "")
    for each in found:
        state = "paused" if each["paused"] else "runs now" if each["running"] else ""
        rows.add_row(
            each["id"], ago(each["last_started_at"]), at(each["next_at"]) if each["next_at"] else "", state
        )
    return rows


def render_users(found: Iterable[Document]) -> Table:
    rows = table("name", "role", "state", "since")
    for each in found:
        rows.add_row(Text(printable(each["username"])), each["role"], _state(each), ago(each["created_at"]))
    return rows


def render_workspaces(found: Iterable[Document]) -> Table:
    rows = table("owner", "name", "id", "phase", "under way")
    for each in found:
        owner, name = Text(printable(each["owner"]["username"])), Text(printable(each["name"]))
        rows.add_row(owner, name, each["id"], phase_cell(each), under_way(each))
    return rows


def _summary(found: Document) -> Iterator[str]:
    limits = found["limits"]
    phases = ", ".join(f"{count} {phase_label(phase)}" for phase, count in found["phases"].items() if count)
    yield f"CodeHub {found['version']}: {limits['running']} of {limits['max_running_global']} places taken"
    yield f"Workspaces: {phases or 'none'}"
    if found["needs_person"]:
        yield f"Waiting for somebody: {found['needs_person']}"


def _state(user: Document) -> Text:
    if user["disabled_at"] is not None:
        return Text(f"disabled {ago(user['disabled_at'])}", "yellow")
    if user["locked_until"] is not None and parse_time(user["locked_until"]) > now():
        return Text(f"locked until {at(user['locked_until'])}", "red")
    return Text("enabled", "green")
