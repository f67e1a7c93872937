"""`codehub token`: personal tokens for programs."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cli.client import Client, connect
from cli.errors import EPILOG, ExitCode, Failed, printable
from cli.formatting import ago, at, clock, now, parse_time
from cli.options import AsJson, Url
from cli.terminal import console, print_json, say, table
from cli.workspace.lookup import is_id, pick

tokens = typer.Typer(no_args_is_help=True, help="Manage your personal tokens.", epilog=EPILOG)

Token = dict[str, Any]
USUAL_DAYS = 90


@tokens.command()
def ls(as_json: AsJson = False, url: Url = None) -> None:
    """List your tokens; the tokens themselves are stored nowhere."""
    with connect(url) as client:
        found = client.get("/tokens")
    if as_json:
        print_json(found)
    else:
        console().print(render_table(found["items"]))


@tokens.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for.", show_default=False)],
    days: Annotated[
        int | None,
        typer.Option(
            "--days",
            metavar="DAYS",
            min=1,
            max=3650,
            help="How long it is valid: 90, or less if your own sign-in ends earlier.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Make a token and print it, this once; programs take it from CODEHUB_TOKEN."""
    with connect(url) as client:
        lasting = days or _usual_days(client)
        try:
            made = client.post("/tokens", {"name": name, "expires_in_days": lasting})
        except Failed as failure:
            if failure.code is ExitCode.REFUSED:
                failure.next_step = f"Sign in for longer with: codehub login --days {lasting + 1}"
            raise
    if as_json:
        print_json(made)
        return
    # The token alone on the output, so that a script can take it.
    say(f"Made {name}, valid until {clock(made['expires_at'])}. The token is shown only now:")
    typer.echo(made["token"])


@tokens.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="TOKEN", help="Its name or id.", show_default=False)],
    url: Url = None,
) -> None:
    """Revoke a token; it stops working at once."""
    with connect(url) as client:
        found = client.get("/tokens")["items"]
        token = next((each for each in found if each["id"] == name), None) if is_id(name) else None
        token = token or pick(name, found, "token", "codehub token ls")
        client.delete(f"/tokens/{token['id']}")
    typer.echo(printable(f"Revoked {token['name']}."))


def _usual_days(client: Client) -> int:
    """A token cannot make one that outlives it."""
    ends = client.get("/session")["expires_at"]
    left = USUAL_DAYS if ends is None else (parse_time(ends) - now()).days
    return max(1, min(USUAL_DAYS, left))


def render_table(found: Iterable[Token]) -> Table:
    rows = table("name", "id", "made", "expires", "last used")
    for each in found:
        expires = at(each["expires_at"]) if each["expires_at"] else "never"
        name = Text(printable(each["name"]))
        rows.add_row(name, each["id"], ago(each["created_at"]), expires, ago(each["last_used_at"]))
    return rows
