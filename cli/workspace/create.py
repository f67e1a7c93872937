"""`codehub ws create`: a new workspace."""

from typing import Annotated

import typer

from cli.client import connect
from cli.formatting import parse_duration
from cli.options import AsJson, Url, Wait
from cli.workspace.lifecycle import finish
from codehub.domain.states import DesiredState


def _seconds(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _idle_time(flag: str, help_: str) -> object:
    return typer.Option(flag, parser=_seconds, metavar="TIME", help=help_, show_default=False)


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.", show_default=False)],
    *,
    description: Annotated[
        str | None, typer.Option("--description", "-d", metavar="TEXT", help="What it is for.")
    ] = None,
    image: Annotated[
        str | None,
        typer.Option("--image", metavar="IMAGE", help="The IDE or image; the configured one unless given."),
    ] = None,
    standby_ttl: Annotated[
        int | None, _idle_time("--stop-after", "Stop it when unused for so long: 10m, 2h.")
    ] = None,
    archive_ttl: Annotated[
        int | None, _idle_time("--archive-after", "Archive it when stopped for so long: 2h, 7d.")
    ] = None,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start it at once.")] = True,
    wait: Wait = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Create a workspace and start it."""
    desired = DesiredState.RUNNING if start else DesiredState.STANDBY
    form = {
        "name": name,
        "description": description,
        "image_ref": image,
        "standby_ttl_seconds": standby_ttl,
        "archive_ttl_seconds": archive_ttl,
        "desired_state": desired,
    }
    with connect(url) as client:
        finish(client, client.post("/workspaces", form), desired, wait=wait, as_json=as_json)
