"""`codehub admin`: the whole system, for administrators."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cli.client import connect
from cli.control_characters import printable
from cli.errors import EPILOG
from cli.formatting import ago, local_time, now, parse_time, upcoming
from cli.options import AsJson, Search, Url
from cli.terminal import console, new_table, print_json, print_note
from cli.words import phase_cell, phase_label, progress_text
from cli.workspace.list import Phases
from codehub.formatting import STEP, UNITS, format_size

admin = typer.Typer(no_args_is_help=True, help="Show the whole system (administrators only).", epilog=EPILOG)

Document = Mapping[str, Any]
SIZE = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(UNITS)})")


@admin.command()
def status(as_json: AsJson = False, url: Url = None) -> None:
    """Show the services that CodeHub needs, the sweeps, and the number of workspaces."""
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
    """List all users by name."""
    with connect(url) as client:
        found = list(client.items("/admin/users"))
    if as_json:
        print_json({"items": found, "next_cursor": None})
    else:
        console().print(render_users(found))


@admin.command()
def workspaces(
    phases: Phases = None,
    search: Search = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the workspaces of all users, newest first."""
    wanted: dict[str, Any] = {"phase": [each.value for each in phases or []]}
    with connect(url) as client:
        found = list(client.items("/admin/workspaces", **wanted, **({"q": search} if search else {})))
    if as_json:
        print_json({"items": found, "next_cursor": None})
    elif not found:
        print_note("No workspaces.")
    else:
        console().print(render_workspaces(found))


@admin.command()
def disk(
    workspace_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a workspace of any user.")],
    limit: Annotated[
        str,
        typer.Argument(
            help="A size such as 50GB, `any` for no limit, or `default` for the installation's limit."
        ),
    ],
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Set the disk limit of a workspace; it applies at the next start."""
    wanted = _parse_limit(limit)
    with connect(url) as client:
        changed = client.patch(f"/admin/workspaces/{workspace_id}/disk", {"limit_bytes": wanted})
    if as_json:
        print_json(changed)
    else:
        allowed = changed["disk"]["limit_bytes"]
        space = format_size(allowed) if allowed else "any amount"
        print_note(f"{printable(changed['name'])} may use {space} of disk space.")


def _parse_limit(text: str) -> int | None:
    if text in {"default", "any"}:
        return None if text == "default" else 0
    found = SIZE.fullmatch(text)
    if found is None:
        raise typer.BadParameter("use a size such as 50GB, `any` or `default`")
    return round(float(found[1]) * float(STEP) ** UNITS.index(found[2]))


@admin.command()
def egress(
    *,
    workspace: Annotated[str | None, typer.Option("--workspace", metavar="ID", help="Only this one.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Only this user's.")] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="TEXT", help="Part of the name.")] = None,
    refused: Annotated[bool, typer.Option("--refused", help="Only what was refused.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many entries to print.")] = 50,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the names that workspaces connected to or were refused, by hour, newest first."""
    filters = {"workspace": workspace, "user": user, "name": name, "refused": refused or None}
    wanted: dict[str, Any] = {key: value for key, value in filters.items() if value is not None}
    with connect(url) as client:
        found = list(islice(client.items("/admin/egress", **wanted), limit))
    if as_json:
        print_json({"items": found, "next_cursor": None})
    elif not found:
        print_note("No connections match.")
    else:
        console().print(render_egress(found))


def render_egress(found: Iterable[Document]) -> Table:
    table = new_table("hour", "owner", "workspace", "name", "port", "", "count")
    for each in found:
        refused = each["verdict"] == "refused"
        table.add_row(
            local_time(each["hour"]),
            Text(printable(each["owner"] or "")),
            Text(printable(each["workspace"] or each["workspace_id"])),
            Text(printable("other names" if each["name"] == "*" else each["name"])),
            str(each["port"] or ""),
            Text(each["verdict"], "red" if refused else ""),
            str(each["count"]),
        )
    return table


def render_dependencies(found: Iterable[Document]) -> Table:
    table = new_table("", "service", "version", "response time", "")
    for each in found:
        status = (
            Text("ok", "green")
            if each["healthy"]
            else Text("down", "bold red" if each["required"] else "yellow")
        )
        milliseconds = f"{each['milliseconds']:.0f} ms"
        table.add_row(
            status, each["name"], each["version"] or "", milliseconds, Text(printable(each["error"] or ""))
        )
    return table


def render_sweeps(found: Iterable[Document]) -> Table:
    table = new_table("sweep", "last", "next", "")
    for each in found:
        state = "paused" if each["paused"] else "running" if each["running"] else ""
        table.add_row(
            each["id"],
            ago(each["last_started_at"]),
            upcoming(each["next_at"]) if each["next_at"] else "",
            state,
        )
    return table


def render_users(found: Iterable[Document]) -> Table:
    table = new_table("name", "role", "status", "created")
    for each in found:
        table.add_row(Text(printable(each["username"])), each["role"], _status(each), ago(each["created_at"]))
    return table


def render_workspaces(found: Iterable[Document]) -> Table:
    table = new_table("owner", "name", "id", "state", "in progress")
    for each in found:
        owner, name = Text(printable(each["owner"]["username"])), Text(printable(each["name"]))
        table.add_row(owner, name, each["id"], phase_cell(each), progress_text(each))
    return table


def _summary(found: Document) -> Iterator[str]:
    limits = found["limits"]
    phases = ", ".join(
        f"{count} {phase_label(phase).lower()}" for phase, count in found["phases"].items() if count
    )
    used, total = limits["running"], limits["max_running_global"]
    yield f"CodeHub {found['version']}: {used} of {total} running slots used"
    yield f"Workspaces: {phases or 'none'}"
    if found["needs_person"]:
        yield f"Workspaces that need a decision: {found['needs_person']}"


def _status(user: Document) -> Text:
    if user["disabled_at"] is not None:
        return Text(f"disabled {ago(user['disabled_at'])}", "yellow")
    if user["locked_until"] is not None and parse_time(user["locked_until"]) > now():
        return Text(f"locked until {local_time(user['locked_until'])}", "red")
    return Text("enabled", "green")
