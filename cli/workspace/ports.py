"""`codehub ws ports`, `share` and `unshare`: servers inside a workspace, and who may open them."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from cli.client import connect
from cli.control_characters import printable
from cli.errors import CommandError, ExitCode
from cli.formatting import parse_duration, upcoming
from cli.options import AsJson, Url, WorkspaceArgument
from cli.terminal import console, new_table, print_json, print_note
from cli.workspace.lookup import find_workspace
from codehub.domain.port_shares import FIRST_PORT, LAST_PORT, Audience
from codehub.words import AUDIENCES, ONLY_OWNER

Document = Mapping[str, Any]
NEVER = "never"

Port = Annotated[
    int,
    typer.Argument(
        metavar="PORT", min=FIRST_PORT, max=LAST_PORT, help="A port inside it.", show_default=False
    ),
]
Public = Annotated[
    bool,
    typer.Option("--public", help="Share it with everyone who has the link, not only with signed-in users."),
]
Expires = Annotated[
    str | None,
    typer.Option(
        "--expires",
        metavar="TIME",
        help="When sharing ends: after 30m, 8h, 7d, or never. Default: 8h.",
        show_default=False,
    ),
]


def ports(name: WorkspaceArgument, as_json: AsJson = False, url: Url = None) -> None:
    """List the ports that its programs listen on and the shared ones."""
    with connect(url) as client:
        found = client.get(f"/workspaces/{find_workspace(client, name)['id']}/ports")
    if as_json:
        print_json(found)
        return
    if found["items"]:
        console().print(render(found["items"]))
    if found["unavailable"]:
        print_note(printable(found["unavailable"]))
    elif not found["items"]:
        print_note("No program is listening on a port, and no port is shared.")


def share(
    name: WorkspaceArgument,
    port: Port,
    *,
    public: Public = False,
    expires: Expires = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Let others open one port, but nothing else of the workspace."""
    form: dict[str, Any] = {"audience": Audience.PUBLIC if public else Audience.USERS}
    if expires is not None:
        form["expires_in"] = _seconds(expires)
    with connect(url) as client:
        workspace_id = find_workspace(client, name)["id"]
        shared = client.put(f"/workspaces/{workspace_id}/ports/{port}/share", form)
    if as_json:
        print_json(shared)
    else:
        typer.echo(printable(shared["url"]))
        print_note(f"Port {port} is open to {describe(shared)}.")


def unshare(name: WorkspaceArgument, port: Port, url: Url = None) -> None:
    """Stop sharing a port; connections of others end within seconds."""
    with connect(url) as client:
        client.delete(f"/workspaces/{find_workspace(client, name)['id']}/ports/{port}/share")
    print_note(f"Port {port} is open to {ONLY_OWNER} now.")


def render(items: list[Document]) -> Table:
    table = new_table("PORT", "PROGRAM", "OPEN TO", "ADDRESS")
    for item in items:
        program = printable(item["process"] or "?") if item["listening"] else "not listening"
        audience = describe(item["share"]) if item["share"] else ONLY_OWNER
        table.add_row(str(item["port"]), program, audience, printable(item["url"] or ""))
    return table


def describe(shared: Document) -> str:
    """Return who may open a port, and until when."""
    until = f", ends {upcoming(shared['expires_at'])}" if shared["expires_at"] else ""
    return f"{AUDIENCES[Audience(shared['audience'])]}{until}"


def _seconds(text: str) -> int | None:
    if text == NEVER:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise CommandError(f"--expires: {error}, or never.", code=ExitCode.USAGE) from error
