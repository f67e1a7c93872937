"""`codehub ws network`: what a workspace may connect to, and what it connected to."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from cli.client import connect
from cli.control_characters import printable
from cli.errors import CommandError, ExitCode
from cli.formatting import local_time
from cli.options import AsJson, Url, WorkspaceArgument
from cli.terminal import console, new_table, print_json
from cli.workspace.lookup import find_workspace
from codehub.domain.egress import EgressMode
from codehub.words import ALWAYS_REFUSED, NOT_ENFORCED

Document = Mapping[str, Any]
MODES = {
    EgressMode.OPEN: "all public names",
    EgressMode.ALLOW_LIST: "only these names",
    EgressMode.NONE: "nothing",
}
Mode = Annotated[
    EgressMode | None,
    typer.Option("--mode", help="Choose a policy: open, allow-list or none.", show_default=False),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="NAME",
        help="A name for the allow-list; *.example.org means all names below it; can be repeated.",
        show_default=False,
    ),
]
Reset = Annotated[bool, typer.Option("--default", help="Return to the default policy.")]
Log = Annotated[bool, typer.Option("--log", help="List the connections of the last seven days by name.")]


def network(
    name: WorkspaceArgument,
    mode: Mode = None,
    *,
    allow: Allow = None,
    default: Reset = False,
    log: Log = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show or change what it may connect to; a change applies within seconds."""
    if default and (mode or allow):
        raise CommandError("Use --default without --mode and --allow.", code=ExitCode.USAGE)
    with connect(url) as client:
        path = f"/workspaces/{find_workspace(client, name)['id']}/network"
        if log:
            found = client.get(f"{path}/log")
        elif default or mode or allow:
            chosen = None if default else mode or EgressMode.ALLOW_LIST
            found = client.patch(path, {"mode": chosen, "names": allow or []})
        else:
            found = client.get(path)
    if as_json:
        print_json(found)
    elif log:
        console().print(render_log(found["items"]))
    else:
        for line in describe(found):
            console().print(line, highlight=False)


def describe(policy: Document) -> Iterator[str]:
    """Yield sentences that describe the policies in force."""
    if not policy["enforced"]:
        yield NOT_ENFORCED
        return
    for each in policy["effective"]:
        names = f": {', '.join(map(printable, each['names']))}" if each["names"] else ""
        yield f"Connects to {MODES[EgressMode(each['mode'])]}{names}."
    yield ALWAYS_REFUSED


def render_log(items: list[Document]) -> Table:
    table = new_table("HOUR", "NAME", "PORT", "RESULT", "COUNT")
    for item in items:
        name = "other names" if item["name"] == "*" else printable(item["name"])
        table.add_row(
            local_time(item["hour"]), name, str(item["port"] or ""), item["verdict"], str(item["count"])
        )
    return table
