"""`codehub ws logs|events`: what its editor prints, and what was asked for and done."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import httpx
import typer
from rich.text import Text

from cli.client import Client, connect, silence
from cli.errors import printable
from cli.formatting import clock
from cli.options import AsJson, Follow, Target, Url
from cli.terminal import console, is_interactive, print_json_line
from cli.words import event_words
from cli.workspace.live_events import Seen, follow
from cli.workspace.lookup import find_workspace

Event = dict[str, Any]
STYLES = {"attempt_failed": "yellow", "error_found": "red", "operation_failed": "red"}
# More lines than this at once are not followed but read.
MOST = 200


def logs(
    name: Target,
    follow_: Annotated[bool, typer.Option("--follow", "-f", help="Stay, and print what comes.")] = False,
    tail: Annotated[
        int, typer.Option("--tail", metavar="LINES", min=0, max=10_000, help="How many of the last lines.")
    ] = 200,
    url: Url = None,
) -> None:
    """Print what its editor has printed."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        path = f"/workspaces/{workspace['id']}/logs"
        try:
            # An editor may say nothing for hours.
            with client.streaming(path, silent_seconds=None, tail=tail, follow=follow_) as response:
                for content in response.iter_bytes():
                    sys.stdout.buffer.write(content)
                    sys.stdout.buffer.flush()
        except httpx.TransportError as error:
            raise silence(client.address, error) from error


def events(
    name: Target,
    follow_: Follow = None,
    tail: Annotated[
        int, typer.Option("--tail", metavar="LINES", min=1, max=MOST, help="How many of the last ones.")
    ] = 20,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Print what was asked for and done, oldest first; with --json one document per line."""
    with connect(url) as client:
        workspace = find_workspace(client, name)
        screen = console()
        for event in _events(client, workspace["id"], tail, live=_shall_follow(follow_)):
            if as_json:
                print_json_line(event)
            else:
                screen.print(render(event), soft_wrap=True)


def render(event: Event) -> Text:
    line = "  ".join(filter(None, [event_words(event), event["detail"].get("message")]))
    return Text.assemble(
        (clock(event["at"]), "dim"),
        "  ",
        (printable(line), STYLES.get(event["kind"], "")),
    )


def _shall_follow(asked: bool | None) -> bool:
    return is_interactive() if asked is None else asked


def _events(client: Client, workspace_id: str, tail: int, *, live: bool) -> Iterator[Event]:
    path = f"/workspaces/{workspace_id}/events"
    newest = client.get(path, limit=tail)["items"]
    yield from reversed(newest)
    last = newest[0]["id"] if newest else 0
    if not live:
        return
    for update in follow(client, workspace_id):
        if isinstance(update, Seen) and update.workspace is not None:
            for event in reversed(client.get(path, limit=MOST)["items"]):
                if event["id"] > last:
                    yield event
                    last = event["id"]
