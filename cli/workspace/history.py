"""`codehub ws logs` and `codehub ws events`: the output of the IDE, and the audit trail."""

import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import httpx
import typer
from rich.text import Text

from cli.client import Client, connect, unreachable_error
from cli.control_characters import LogFilter, printable
from cli.formatting import local_time
from cli.options import AsJson, Follow, Url, WorkspaceArgument
from cli.terminal import console, is_interactive, print_json_line
from cli.words import event_text
from cli.workspace.live_events import Snapshot, follow
from cli.workspace.lookup import find_workspace

Event = dict[str, Any]
STYLES = {"attempt_failed": "yellow", "error_found": "red", "operation_failed": "red"}
MAX_EVENTS = 200


def logs(
    name: WorkspaceArgument,
    follow_: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new output.")] = False,
    tail: Annotated[
        int, typer.Option("--tail", metavar="LINES", min=0, max=10_000, help="How many of the last lines.")
    ] = 200,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Print control characters too, even on a terminal, which obeys them."),
    ] = False,
    url: Url = None,
) -> None:
    """Print the output of its IDE; on a terminal, without control characters."""
    write = _write_text(LogFilter()) if is_interactive() and not raw else _write_bytes
    with connect(url) as client:
        workspace = find_workspace(client, name)
        path = f"/workspaces/{workspace['id']}/logs"
        try:
            # An IDE may print nothing for hours.
            with client.stream(path, read_seconds=None, tail=tail, follow=follow_) as response:
                for content in response.iter_bytes():
                    write(content)
        except httpx.TransportError as error:
            raise unreachable_error(client.address, error) from error


def _write_text(log_filter: LogFilter) -> Callable[[bytes], None]:
    return lambda content: typer.echo(log_filter.filter(content), nl=False)


def _write_bytes(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def events(
    name: WorkspaceArgument,
    follow_: Follow = None,
    tail: Annotated[
        int,
        typer.Option("--tail", metavar="LINES", min=1, max=MAX_EVENTS, help="How many of the last events."),
    ] = 20,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Print its audit trail, oldest event first. With --json, print one document per line."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        screen = console()
        live = is_interactive() if follow_ is None else follow_
        for event in _events(client, workspace["id"], tail, live=live):
            if as_json:
                print_json_line(event)
            else:
                screen.print(render(event), soft_wrap=True)


def render(event: Event) -> Text:
    line = "  ".join(filter(None, [event_text(event), event["detail"].get("message")]))
    return Text.assemble(
        (local_time(event["at"]), "dim"),
        "  ",
        (printable(line), STYLES.get(event["kind"], "")),
    )


def _events(client: Client, workspace_id: str, tail: int, *, live: bool) -> Iterator[Event]:
    path = f"/workspaces/{workspace_id}/events"
    newest = client.get(path, limit=tail)["items"]
    yield from reversed(newest)
    last = newest[0]["id"] if newest else 0
    if not live:
        return
    for update in follow(client, workspace_id):
        if isinstance(update, Snapshot) and update.workspace is not None:
            for event in reversed(client.get(path, limit=MAX_EVENTS)["items"]):
                if event["id"] > last:
                    yield event
                    last = event["id"]
