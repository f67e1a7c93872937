"""`codehub token`: personal tokens for programs."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cli.client import Client, connect
from cli.errors import EPILOG, CommandError, ExitCode, printable
from cli.formatting import ago, local_time, now, parse_time, upcoming
from cli.options import AsJson, Url
from cli.terminal import console, new_table, print_json, print_note
from cli.workspace.lookup import find_by_name, is_id

tokens = typer.Typer(no_args_is_help=True, help="Manage your personal tokens.", epilog=EPILOG)

Token = dict[str, Any]
DEFAULT_DAYS = 90


@tokens.command()
def ls(as_json: AsJson = False, url: Url = None) -> None:
    """List your tokens; CodeHub does not store their values."""
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
            help="How many days it is valid. Default: 90, or less if your own token expires earlier.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Create a token and print it once; programs use it in CODEHUB_TOKEN."""
    with connect(url) as client:
        valid_days = days or _default_days(client)
        try:
            created = client.post("/tokens", {"name": name, "expires_in_days": valid_days})
        except CommandError as error:
            if error.code is ExitCode.REFUSED:
                error.next_step = f"Sign in for longer with: codehub login --days {valid_days + 1}"
            raise
    if as_json:
        print_json(created)
        return
    # Only the token goes to standard output, for scripts.
    print_note(
        f"Created {name}, valid until {local_time(created['expires_at'])}. The token is shown only once:"
    )
    typer.echo(created["token"])


@tokens.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="TOKEN", help="Its name or id.", show_default=False)],
    url: Url = None,
) -> None:
    """Revoke a token; it stops working immediately."""
    with connect(url) as client:
        found = client.get("/tokens")["items"]
        token = next((each for each in found if each["id"] == name), None) if is_id(name) else None
        token = token or find_by_name(name, found, "token", "codehub token ls")
        client.delete(f"/tokens/{token['id']}")
    typer.echo(printable(f"Revoked {token['name']}."))


def _default_days(client: Client) -> int:
    """Return the default, or less: a token cannot create one that outlives it."""
    expires = client.get("/session")["expires_at"]
    left = DEFAULT_DAYS if expires is None else (parse_time(expires) - now()).days
    return max(1, min(DEFAULT_DAYS, left))


def render_table(found: Iterable[Token]) -> Table:
    table = new_table("name", "id", "created", "expires", "last used")
    for each in found:
        expires = upcoming(each["expires_at"]) if each["expires_at"] else "never"
        name = Text(printable(each["name"]))
        table.add_row(name, each["id"], ago(each["created_at"]), expires, ago(each["last_used_at"]))
    return table
