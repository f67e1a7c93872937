"""`codehub token`: personal tokens for programs."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cli.client import Client, connect
from cli.control_characters import printable
from cli.errors import EPILOG
from cli.formatting import ago, local_time, upcoming
from cli.options import AsJson, PasswordStdin, Url
from cli.password_session import password_session, read_password
from cli.terminal import console, new_table, print_json, print_note
from cli.workspace.lookup import find_by_name, find_workspace, is_id
from codehub.domain.scopes import Scope

tokens = typer.Typer(no_args_is_help=True, help="Manage your personal tokens.", epilog=EPILOG)

Token = dict[str, Any]
DEFAULT_DAYS = 90
DEFAULT = (Scope.WORKSPACES,)
Scopes = Annotated[
    list[Scope] | None,
    typer.Option(
        "--scope",
        help="What it may do; can be repeated. Default: workspaces, which includes read.",
        show_default=False,
    ),
]
OnlyWorkspaces = Annotated[
    list[str] | None,
    typer.Option(
        "--workspace",
        metavar="WORKSPACE",
        help="Limit it to this workspace; can be repeated.",
        show_default=False,
    ),
]


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
    *,
    days: Annotated[
        int,
        typer.Option(
            "--days",
            metavar="DAYS",
            min=1,
            max=3650,
            help="How many days it stays valid.",
        ),
    ] = DEFAULT_DAYS,
    scopes: Scopes = None,
    only: OnlyWorkspaces = None,
    password_stdin: PasswordStdin = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Ask for your password, create a token and print it once; programs use it in CODEHUB_TOKEN."""
    with connect(url) as client:
        user = client.get("/session")["user"]["username"]
        workspaces = [find_workspace(client, each)["id"] for each in only or []]
        address = client.address
    password = read_password(from_input=password_stdin)
    with Client(address) as client, password_session(client, user, password) as session:
        form = {"name": name, "expires_in_days": days, "scopes": [each.value for each in scopes or DEFAULT]}
        created = session.post("/tokens", {**form, "workspaces": workspaces or None})
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


def render_table(found: Iterable[Token]) -> Table:
    table = new_table("name", "id", "scopes", "created", "expires", "last used")
    for each in found:
        expires = upcoming(each["expires_at"]) if each["expires_at"] else "never"
        name = Text(printable(each["name"]))
        table.add_row(
            name, each["id"], _scopes(each), ago(each["created_at"]), expires, ago(each["last_used_at"])
        )
    return table


def _scopes(token: Token) -> str:
    scopes = "everything" if token["scopes"] is None else ", ".join(token["scopes"])
    only = token["workspaces"]
    if only is None:
        return scopes
    return f"{scopes}, for {len(only)} workspace{'s' if len(only) > 1 else ''}"
