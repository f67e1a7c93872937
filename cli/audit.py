"""`codehub audit`: the audit log of accounts and administration."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cli.client import connect
from cli.control_characters import printable, printable_json
from cli.formatting import local_time
from cli.options import Url
from cli.terminal import console, new_table, print_note
from codehub.words import AUDIT_ACTIONS

Document = Mapping[str, Any]
Who = Annotated[str | None, typer.Option("--who", metavar="NAME", help="Only what this user did.")]
What = Annotated[
    str | None, typer.Option("--what", metavar="ACTION", help="Only this action, such as sign_in.")
]
TIME = "2026-11-16T09:30:00Z"
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help=f"From this time on: {TIME}.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before this time.")]
Search = Annotated[
    str | None, typer.Option("--search", "-s", metavar="TEXT", help="Part of a name, address or detail.")
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many entries to print.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print all matching entries as JSON lines.")]


def audit(
    *,
    who: Who = None,
    what: What = None,
    since: Since = None,
    until: Until = None,
    search: Search = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only what failed.")] = False,
    limit: Limit = 50,
    json_lines: JsonLines = False,
    url: Url = None,
) -> None:
    """Show sign-ins, tokens and changes to accounts, newest first (administrators only)."""
    outcome = "failure" if failed else None
    wanted = {"actor": who, "action": what, "since": since, "until": until, "q": search, "outcome": outcome}
    parameters: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    with connect(url) as client:
        if json_lines:
            with client.stream("/admin/audit/export", **parameters) as response:
                for line in response.iter_lines():
                    typer.echo(printable_json(line))
            return
        found = list(islice(client.items("/admin/audit", **parameters), limit))
    if found:
        console().print(render_table(found))
    else:
        print_note("No matching entries.")


def render_table(found: Iterable[Document]) -> Table:
    table = new_table("time", "who", "what", "about", "address")
    for each in found:
        what = str(AUDIT_ACTIONS.get(each["action"], each["action"]))
        failed = each["outcome"] == "failure"
        table.add_row(
            local_time(each["at"]),
            Text(printable(each["actor"])),
            Text(printable(f"{what} (failed)" if failed else what), "red" if failed else ""),
            Text(printable(each["target"] or each["target_id"] or "")),
            Text(printable(each["address"] or "")),
        )
    return table
